/** One `LockService` of one process, as it describes itself to the store every 5 s. */
export interface InstanceInfo {
  /** Random, new at each start of the service. Every owner token of the service contains it. */
  readonly id: string;
  /** Option `instance.application`, else `npm_package_name` of the environment, else `node`. */
  readonly application: string;
  readonly host: string;
  readonly pid: number;
  /** Option `instance.version`, else `npm_package_version` of the environment. */
  readonly version?: string;
  /** The `name` of the service, if it has one. */
  readonly service?: string;
  /** When the service was opened, by the clock of its machine. */
  readonly startedAt: Date;
  /** When it last replied or described itself, by the clock of the store. */
  readonly seenAt: Date;
  /**
   * Whether it is frozen, cut off or dead: it was asked and did not reply within 250 ms. If no message reaches it: it has
   * not described itself for 15 s.
   */
  readonly isUnresponsive: boolean;
  /**
   * Whether messages reach it. An instance that may not subscribe cannot be asked, and detects a forced release at its
   * next renewal.
   */
  readonly isListening: boolean;
}

/** Where a call comes from, as far as its own process knows. */
export interface CallOrigin {
  /** `OrdersService.pay` for a decorated method. */
  readonly method?: string;
  /** `order:<orderId>`. */
  readonly template?: string;
  /** File and line of a call by hand, where it was recorded. */
  readonly place?: string;
}

export interface HolderInfo extends CallOrigin {
  /**
   * Names the lease, as long as it lasts: every other lease of the key has another one. It is not the owner token, and
   * gives no access to the lock.
   */
  readonly leaseId: string;
  /**
   * The instance that holds it; missing for a lock that other software made, and for an instance whose record is gone.
   */
  readonly instance?: InstanceInfo;
  /** Whether other software than Holdfast made it. */
  readonly isForeign: boolean;
  /** Whether it was detached and waits to be attached, without a holder. */
  readonly isDetached?: boolean;
  /** Whether it is the leader of this name. */
  readonly isLeader?: boolean;
  /** How many of the places of a limit; missing for one, and without a limit. */
  readonly places?: number;
  /** Since when the key is held, by the clock of the store; missing if it is unknown. */
  readonly since?: Date;
  /** Milliseconds until the lease ends if it is not renewed; `Infinity` without TTL. */
  readonly remainingMs: number;
  /** As the instance reports it; missing if it did not reply. */
  readonly fencingToken?: number;
  /**
   * Whether the instance was asked and did not reply within 250 ms. The origin of the lock is then from its last
   * report, if that names it.
   */
  readonly isUnresponsive: boolean;
}

/** One process in line. Its callers stand in a line of their own behind this place. */
export interface WaiterInfo {
  /** 1 is next. Over several masters the order is not fixed. */
  readonly position: number;
  readonly instance?: InstanceInfo;
  /** How many of the places of a limit it wants; missing for one, and without a limit. */
  readonly places?: number;
  readonly since?: Date;
  /** All keys that it waits for, if it wants several. */
  readonly keys?: readonly string[];
  /** The callers that wait there, the earliest first; missing if the instance did not reply. */
  readonly callers?: readonly (CallOrigin & { readonly since: Date })[];
  readonly isUnresponsive: boolean;
}

export interface OnceInfo {
  readonly state: 'running' | 'failed' | 'done' | 'exhausted';
  readonly attempts: number;
  /** The kept error of the last attempt. */
  readonly error?: string;
  /** For how many ms the record is still kept. */
  readonly keptForMs: number;
}

export type LockMode = 'exclusive' | 'shared' | `limit:${number}`;

/** A lock that an instance held for 1 s or longer, or lost. */
export interface PastHoldInfo extends CallOrigin {
  readonly instance: InstanceInfo;
  readonly fencingToken: number;
  readonly from: Date;
  readonly to: Date;
  readonly outcome: 'released' | 'detached' | 'lost';
  /** Why it was lost, as in `LockLostError`. */
  readonly reason?: string;
}

/** A holder in a row of `list`. */
export interface LeaseSummary {
  readonly leaseId: string;
  /** The id of its instance, if it has a record. */
  readonly instanceId?: string;
}

/** One row of `list`. */
export interface LockSummary {
  readonly key: string;
  readonly state: 'held' | 'free';
  readonly mode?: LockMode;
  /** The number of holders. */
  readonly holders: number;
  /** The same holders, for `release`. */
  readonly leases: readonly LeaseSummary[];
  /** Whether the instance of one of them is frozen, cut off or dead. */
  readonly isUnresponsive: boolean;
  /** The number of places that they have together, if a limit counts them. */
  readonly inUse?: number;
  /** The instance of the first holder. */
  readonly instance?: InstanceInfo;
  /** Whether the first holder was detached and waits to be attached. */
  readonly isDetached?: boolean;
  /** Whether the first holder is the leader of this name. */
  readonly isLeader?: boolean;
  readonly since?: Date;
  readonly remainingMs?: number;
  /** The number of processes in line. At most 100 are counted. */
  readonly waiting: number;
  /** The ids of those that have a record. */
  readonly waitingInstanceIds: readonly string[];
  readonly once?: OnceInfo['state'];
}

/** The description of one key. */
export interface LockDescription {
  readonly key: string;
  readonly state: 'held' | 'free';
  readonly mode?: LockMode;
  /** The limit that `setLimit` has set. */
  readonly limit?: number;
  /** The last fencing token that the store knows: a turn under a lease may have a larger one. */
  readonly fencingToken?: number;
  readonly holders: readonly HolderInfo[];
  readonly line: readonly WaiterInfo[];
  readonly once?: OnceInfo;
  /** Instances that were asked and did not reply within 250 ms. */
  readonly unresponsive: readonly InstanceInfo[];
  /**
   * The last holders, the newest first, as the instances that still run remember them: those that held it for 1 s or
   * longer, or lost it.
   */
  readonly history: readonly PastHoldInfo[];
  /** The interventions of operators on this key, the newest first. */
  readonly audit: readonly AuditEntry[];
}

/** A holder that an operator saw. */
export interface SeenHolder {
  readonly leaseId: string;
  /**
   * Callers of one process may pass a lease on, each with its own fencing token. With this property, only the caller
   * with this token loses the lock, if its process replies within 250 ms.
   */
  readonly fencingToken?: number | undefined;
}

/** A key with its holders, as an operator saw them: what `describe` returned. */
export interface SeenLock {
  readonly key: string;
  readonly holders: readonly SeenHolder[];
}

/** An instance as an operator saw it: what `instances` returned. */
export interface SeenInstance {
  readonly id: string;
  /** If it was unresponsive and replies now, or reports again, its locks are not ended. Default: `false`. */
  readonly isUnresponsive?: boolean;
}

/** Work of `runOnce` as an operator saw it: what `describe` returned. */
export interface SeenOnce {
  readonly key: string;
  readonly once?: Pick<OnceInfo, 'state' | 'attempts'>;
}

/** What became of an intervention. */
export type InterventionOutcome<Now> =
  | {
      readonly status: 'done';
      /** What it was done to, in alphabetical order. */
      readonly keys: readonly string[];
      /** Keys whose release the store did not confirm. They may still be held; missing if there are none. */
      readonly unconfirmed?: readonly string[];
      /** Why the audit log could not be written; missing if it has the intervention. */
      readonly notRecorded?: string;
    }
  /** There was nothing to do: the key is free, the instance holds nothing, or there is no such work. */
  | { readonly status: 'nothing' }
  /** Nothing was done: what the operator saw has changed. */
  | {
      readonly status: 'refused';
      /** How it is now. */
      readonly now: Now;
    };

/** An intervention of an operator. The last 1,000 are kept. */
export interface AuditEntry {
  readonly at: Date;
  readonly action: 'release' | 'release-instance' | 'forget-once';
  readonly keys: readonly string[];
  readonly by: string;
  readonly reason: string;
}

/** One key of `hot`, over the last 5 minutes. */
export interface HotKey {
  readonly key: string;
  /** How long all callers together waited, in ms; of those that wait now, so far. */
  readonly waitedMs: number;
  /** How many waits are over. */
  readonly waits: number;
  readonly refusals: number;
  /** How many callers wait now. */
  readonly waiting: number;
  /** Since when the first of them waits; missing if none does. */
  readonly since?: Date;
}

/** What all instances did in one minute. */
export interface ActivityMinute {
  readonly at: Date;
  /** The most locks that each held at one look, together; each looks every 5 s. */
  readonly held: number;
  /** The most callers that waited. */
  readonly waiting: number;
  readonly refusals: number;
}

export interface HotKeys {
  /** The longest waits, and then the most refusals, first. */
  readonly keys: readonly HotKey[];
  /** Keys that callers wait for now; the longest wait first. A key that is stuck is among the first. */
  readonly waiting: readonly HotKey[];
  /** How many callers wait now, for all keys together. */
  readonly callers: number;
  /** The last 60 minutes, the oldest first. */
  readonly hour: readonly ActivityMinute[];
  /** Instances that did not reply: their share is missing. */
  readonly unresponsive: readonly InstanceInfo[];
}

export interface ListOptions {
  /** Only keys that begin with it. */
  readonly prefix?: string;
  /** Only these keys, without a search of the store. */
  readonly keys?: readonly string[];
  /** The largest number of keys. Default: all. */
  readonly limit?: number;
}
