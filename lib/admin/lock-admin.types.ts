/** One `LockService` of one process, as it describes itself to the store every 5 s. */
export interface InstanceInfo {
  /** Random, of this start of the service; it is part of every owner token that the service makes. */
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
  /** When it last described itself, by the clock of the store. */
  readonly seenAt: Date;
  /** It has not described itself for 15 s: it is frozen, cut off or dead. */
  readonly isSilent: boolean;
  /** Whether messages reach it. One that may not subscribe cannot be asked, and hears of a forced release at its next renewal. */
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
  /** Whose it is; missing for a lock that other software made, and for one of an instance whose record is gone. */
  readonly instance?: InstanceInfo;
  /** Holdfast did not make it. */
  readonly isForeign: boolean;
  /** Nobody holds it at the moment: it was detached, and waits for whoever attaches it. */
  readonly isDetached?: boolean;
  /** How many places it has of those that a limit counts; missing for one, and without a limit. */
  readonly places?: number;
  /** Since when the key is held, by the clock of the store; missing where that is not known. */
  readonly since?: Date;
  /** Milliseconds until the lease ends if it is not renewed; `Infinity` without TTL. */
  readonly remainingMs: number;
  readonly fencingToken?: number;
  /** The instance was asked and did not answer within 250 ms: of where the lock was asked for, its last report tells, if anything. */
  readonly isSilent: boolean;
}

/** One process in line; its callers stand in a line of their own behind this place. */
export interface WaiterInfo {
  /** 1 is next. Over several masters the order is not fixed. */
  readonly position: number;
  readonly instance?: InstanceInfo;
  /** How many places it wants of those that a limit counts; missing for one, and without a limit. */
  readonly places?: number;
  readonly since?: Date;
  /** All keys that it waits for, where it wants several. */
  readonly keys?: readonly string[];
  /** Those who wait there, the first first; missing where the instance did not answer. */
  readonly callers?: readonly (CallOrigin & { readonly since: Date })[];
  readonly isSilent: boolean;
}

export interface OnceInfo {
  readonly state: 'running' | 'failed' | 'done' | 'exhausted';
  readonly attempts: number;
  /** What is remembered of the error of the last attempt. */
  readonly error?: string;
  /** For how long yet it is remembered. */
  readonly keptForMs: number;
}

export type LockMode = 'exclusive' | 'shared' | 'upgradeable' | `limit:${number}`;

/** One row of `list`. */
export interface LockSummary {
  readonly key: string;
  readonly state: 'held' | 'free';
  readonly mode?: LockMode;
  /** How many hold it. */
  readonly holders: number;
  /** How many places they have together, where a limit counts them. */
  readonly inUse?: number;
  /** The instance of the first holder. */
  readonly instance?: InstanceInfo;
  readonly since?: Date;
  readonly remainingMs?: number;
  /** How many processes stand in line. */
  readonly waiting: number;
  readonly once?: OnceInfo['state'];
}

/** Everything that is known of one key. */
export interface LockDescription {
  readonly key: string;
  readonly state: 'held' | 'free';
  readonly mode?: LockMode;
  /** The limit that `setLimit` has set. */
  readonly limit?: number;
  /** The last fencing token that was given out. */
  readonly fencingToken?: number;
  readonly holders: readonly HolderInfo[];
  readonly line: readonly WaiterInfo[];
  readonly once?: OnceInfo;
  /** Instances that were asked and did not answer within 250 ms. */
  readonly silent: readonly InstanceInfo[];
  /** What was done to this key by operators, the newest first. */
  readonly audit: readonly AuditEntry[];
}

/** What an operator did. The last 1,000 are kept. */
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
  /** Of all callers together, in ms. */
  readonly waitedMs: number;
  readonly waits: number;
  readonly refusals: number;
}

export interface HotKeys {
  readonly keys: readonly HotKey[];
  /** Instances that did not answer: their share is missing. */
  readonly silent: readonly InstanceInfo[];
}

export interface ListOptions {
  /** Only keys that begin with it. */
  readonly prefix?: string;
  /** At most so many keys. Default: all. */
  readonly limit?: number;
}
