/** What an instance records of one lock that it holds, in case it cannot be asked later. */
export interface RecordedHold {
  readonly leaseId: string;
  readonly method?: string | undefined;
  readonly template?: string | undefined;
  readonly place?: string | undefined;
  /** Since when, by the clock of its machine, in ms since 1970. */
  readonly sinceMs?: number | undefined;
  readonly isLeading?: boolean | undefined;
}

/** One lock service of one process, as it describes itself. */
export interface InstanceRecord {
  /** Random, of this start of the service; it is part of every owner token that the service makes. */
  readonly id: string;
  readonly application: string;
  readonly host: string;
  readonly pid: number;
  readonly version?: string | undefined;
  /** Which scripts and keys it uses: `PROTOCOL` of its own version. */
  readonly protocol?: number | undefined;
  readonly service?: string | undefined;
  /** By the clock of its machine, in ms since 1970. */
  readonly startedAtMs: number;
  /** The address at which messages reach it; missing if none do. */
  readonly address?: string | undefined;
  /** The keys that it has held longest. */
  readonly holds?: readonly RecordedHold[] | undefined;
}

/** A record that was found in the store. */
export interface FoundInstance extends InstanceRecord {
  /** How long ago it was written, by the clock of the store; 0 of an instance that replies. */
  readonly seenMsAgo: number;
  /** Whether it was asked and did not reply. */
  readonly isSilent?: boolean;
}

/** A token that a key is held under. */
export interface FoundHolder {
  readonly token: string;
  /** `Infinity` without TTL. */
  readonly remainingMs: number;
  /** By the clock of the store, in ms since 1970, where it can be known. */
  readonly sinceMs?: number | undefined;
}

/** A place in the line of a key. */
export interface FoundPlace {
  /** The token that waits, where it names its maker; else what names the line in its process. */
  readonly token: string;
  /** On which its process is called. */
  readonly channel: string;
  readonly sinceMs?: number | undefined;
}

export interface FoundOnce {
  readonly state: string;
  readonly attempts: number;
  /** The value of work that is done, or the error of the last attempt. */
  readonly text?: string | undefined;
  readonly remainingMs: number;
}

/** What the store knows of a key. */
export interface FoundKey {
  readonly key: string;
  readonly holders: readonly FoundHolder[];
  /** Tokens that only a minority of several masters has: of a caller that died, or whose request is on its way. */
  readonly strays?: readonly FoundHolder[] | undefined;
  /** The last fencing token that the store knows: turns may have used larger ones since. */
  readonly fencingToken?: number | undefined;
  /** The first 100. */
  readonly line: readonly FoundPlace[];
  readonly once?: FoundOnce | undefined;
  /** The limit that was set for holders by a limit. */
  readonly limit?: number | undefined;
  /** The number of the last caller that came to replace the holders. */
  readonly newest?: number | undefined;
}

/**
 * The methods of a store for operators: its services, its keys, and messages between processes. Every method rejects
 * with a `LockStoreUnavailableError` when too few servers reply.
 */
export interface AdminStore {
  /**
   * Calls back with what others `tell` this service. Services that share a store all get the messages of each. Returns
   * a function that ends it.
   */
  listen(onMessage: (text: string) => void): () => void;
  /** Whether messages reach this service now. */
  readonly isHearing: boolean;
  /** Where they do, or will when its connection for them is back; `undefined` if it may have none. */
  address(): string | undefined;
  /** Writes the record of this instance, for `lifeMs`. */
  report(record: InstanceRecord, lifeMs: number): Promise<void>;
  /** Removes that record. */
  retract(id: string): Promise<void>;
  instances(): Promise<readonly FoundInstance[]>;
  /** All keys that are held, waited for or marked as done, some at a time; some may come twice. */
  keys(prefix: string): AsyncIterable<readonly string[]>;
  look(keys: readonly string[]): Promise<readonly FoundKey[]>;
  /** Sends a message, which arrives if a service listens at the address. */
  tell(address: string, text: string): Promise<void>;
  /** Counts one more caller that replaces the holders of a key, and returns its number. */
  arrive(key: string): Promise<number>;
  /** Deletes the record of work that is to be done once, if it is still the one that was seen. Returns whether it was. */
  forgetOnce(key: string, seen: Pick<FoundOnce, 'state' | 'attempts'>): Promise<boolean>;
  /** Adds to the log of what operators did. The last 1,000 entries are kept. */
  note(entry: string): Promise<void>;
  /** The newest first. */
  notes(count: number): Promise<readonly string[]>;
}
