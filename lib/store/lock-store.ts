import type { AdminStore } from './admin-store.js';
import type { OnceStore } from './once-store.js';
import type { Unavailable } from './unavailable.js';

export type { Unavailable };

/** What a lease is called by in the store: its keys and the secret that proves ownership. */
export interface LeaseReference {
  /** Without duplicates, without `keyPrefix`. */
  readonly keys: readonly string[];
  /**
   * Owner token: unguessable, new for every attempt, except that of a caller with a ticket. `holdModeOf` tells whether it holds the keys
   * alone or together with others. A store that treats every lock as exclusive is safe, only slower.
   */
  readonly token: string;
}

export interface LeaseRequest extends LeaseReference {
  readonly ttlMs: number;
}

/** A lease that its holder releases. */
export interface EndingLease extends LeaseRequest {
  /** Whether it was granted plainly (`Granted`), no turns were taken under it, and no keys stay taken. */
  readonly isPlain?: boolean;
}

/** A lease to be renewed, and what its holder knows of it. */
export interface LeaseRenewal extends LeaseRequest {
  readonly fencingToken: number;
  /** What was left of its validity when the renewal was asked for, in ms. */
  readonly validForMs: number;
}

/** A place in the store's line for a key. */
export interface LinePlace {
  /** Names the waiting callers of this process; what the store reports is addressed to it, or to the token of the request. */
  readonly id: string;
  /** TTL of the request that first stood there, in ms. */
  readonly ttlMs: number;
  /** The place that an earlier request was given, at the first key of this one. */
  readonly ticket?: number | undefined;
}

/** How long a refused request holds the keys before the busy one, for a caller that waits for that one. */
export interface BriefHold {
  /** Unless the busy key has been held for this long already, in ms. */
  readonly limitMs: number;
  /** How long they are held unless they are acquired or released, in ms. */
  readonly ttlMs: number;
  /** How many of the other keys come before the first one in the order that is the same in every process. */
  readonly before: number;
}

export interface AcquireRequest extends LeaseRequest {
  /** Where to stand in line when refused, at the busy key. Only after `listen` has answered `'listening'`. */
  readonly line?: LinePlace | undefined;
  /**
   * The fencing token of a phase that this caller may join although others wait: it stood in line with a caller that
   * was admitted.
   */
  readonly joins?: number | undefined;
  /** What to hold when the busy key is not the first one, in stores that can in the same step. */
  readonly keeps?: BriefHold | undefined;
  /** How many tries in a row, right before this one, were `contended`: votes are not to be split again. */
  readonly splits?: number | undefined;
}

export interface Held {
  readonly status: 'held';
  /** The first key that was busy. */
  readonly key: string;
  /** What is left of the holder's lease, in ms; `Infinity` for a lock without TTL that other software set. */
  readonly remainingMs: number;
  /**
   * After how many ms to ask again at the latest. Less than `remainingMs` if the holder will not notify this process of
   * its end.
   */
  readonly checkAgainMs: number;
  /**
   * No caller is sure to hold it: several asked at the same moment, and the votes of the nodes were split. Another try
   * after a short random pause may succeed.
   */
  readonly contended?: true;
  /**
   * The place of this token in the line of the key, in stores that grant the lock to the first in line. Give it when
   * you ask again with the same token, and afterwards with other tokens.
   */
  readonly ticket?: number | undefined;
  /** Whether the keys before this one are held, as the request asked for; `undefined`: the store did not try. */
  readonly kept?: boolean | undefined;
  /** For how many ms the key has been held, as far as that is known; for a call of several keys. */
  readonly heldForMs?: number | undefined;
  /** The limit of other holders of the key, if it differs from the caller's and none was set. */
  readonly otherLimit?: number | undefined;
  /**
   * The token that holds it, if it is known. It distinguishes our own holders from others, and must never be disclosed.
   */
  readonly holder?: string | undefined;
}

export interface Granted {
  readonly status: 'granted';
  /** 0 of a store that has none: a driver. */
  readonly fencingToken: number;
  /**
   * Whether the fencing token is a reading of the clock, and at most 20 ms ahead of it. Then later grants have tokens that are larger by
   * the µs that passed since. Default: no.
   */
  readonly isFromClock?: boolean | undefined;
  /** Whether no other caller waited or shared, so that the release can be plain, too. Default: no. */
  readonly isPlain?: boolean | undefined;
  /** As in `Held`. */
  readonly otherLimit?: number | undefined;
  /** Whether others stand in line for one of the keys. Default: unknown. */
  readonly othersWait?: boolean | undefined;
}

export type AcquireOutcome = Granted | Held | Unavailable;

export type ExtendOutcome =
  | { readonly status: 'extended' }
  | { readonly status: 'lost'; readonly reason: 'stolen' | 'released-elsewhere' }
  | Unavailable;

export type ReleaseOutcome =
  { readonly status: 'released' } | { readonly status: 'not-held' } | Unavailable;

/** The outcome of setting a limit. */
export type SetLimitOutcome = { readonly status: 'set' } | Unavailable;

/** A lease that is to continue under another owner token. */
export interface TransferRequest extends LeaseRequest {
  /** The token that replaces `token`, of the same mode. */
  readonly to: string;
  /** The last fencing token that was used under the lease. */
  readonly lastToken: number;
  /** Whether a caller gets the lease by it: then a server that may have forgotten leases refuses. */
  readonly grants?: boolean;
}

export type TransferOutcome =
  | { readonly status: 'transferred' }
  | {
      readonly status: 'lost';
      /**
       * `'gone'`: a key is free. `'attached'`: it is held, and was not granted since the lease was: the lease continues
       * under yet another token. `'stolen'`: the key was granted to another caller since.
       */
      readonly reason: 'gone' | 'attached' | 'stolen';
    }
  | Unavailable;

/** A command of Redis: its name and its arguments. */
export type WriteCommand = readonly [name: string, ...args: (string | number)[]];

/** Commands that only the holder of a lease may have run. */
export interface WriteRequest extends LeaseRequest {
  readonly commands: readonly WriteCommand[];
}

export type WriteOutcome =
  | { readonly status: 'written'; readonly replies: readonly unknown[] }
  /** The command with that index was answered with an error; those before it were run, those after it were not. */
  | { readonly status: 'failed'; readonly index: number; readonly message: string }
  /** The lease does not hold its keys any more: nothing was run. */
  | { readonly status: 'lost'; readonly reason: 'stolen' | 'released-elsewhere' }
  /** Nothing was run, nor will it be until the application is changed. */
  | { readonly status: 'refused'; readonly problem: string }
  /** The store cannot tell whether they were run. */
  | Unavailable;

/** How one node of a store is. */
export interface NodeHealth {
  /** `host:port`, never with credentials. */
  readonly node: string;
  readonly reachable: boolean;
  /** The latency in ms; `undefined` when it did not reply. */
  readonly latencyMs?: number | undefined;
  /** By how many ms its clock is ahead of this machine's, to within half the latency; negative when it is behind. */
  readonly clockOffsetMs?: number | undefined;
  /** For how many ms it grants no locks yet, because it may have forgotten leases (`restartGuard`); 0 when it does. */
  readonly quarantinedForMs: number;
  /** What is wrong, without secrets. */
  readonly problem?: string | undefined;
  /** What to do about it, where Redis' error tells. */
  readonly remedy?: string | undefined;
  /** Since when it grants no locks, if this process has noticed it before. */
  readonly since?: Date | undefined;
}

export interface StoreHealth {
  readonly nodes: readonly NodeHealth[];
  /** How many of the nodes have to agree on a lock; of a Cluster, which counts as one, all masters are listed. */
  readonly quorum: number;
  /** Whether enough nodes are reachable to grant locks. */
  readonly hasQuorum: boolean;
  /** What is wrong although locks are granted: they are in memory, and `NODE_ENV` is `production`. */
  readonly warning?: string | undefined;
}

/** What a store reports of a key: a hint. A lock is granted, lost or ended only by a reply of the store. */
export interface LineCall {
  /** The id of the place whose callers should ask again, or the token that stands there, or its tail (`tailOf`). */
  readonly to: string;
  /**
   * 0: now. Otherwise: if no release was reported until then, because the lock was given to a caller that may be dead.
   */
  readonly inMs: number;
}

/**
 * Called with a key that was released, or that a caller in line was given. Called without a key when such reports may
 * have been missed (after a reconnect).
 */
export type ReleaseListener = (key?: string, call?: LineCall) => void;

/**
 * A store of leases. Every method settles within its own time limit, and none rejects for a fault of the store. An
 * outage is the outcome `unavailable`, never a refusal (`held`) or a loss (`lost`).
 *
 * A lease is all or nothing over its keys. A request that is refused at its first key changes nothing but the line of
 * that key. Refused at a later one, its token holds none of its keys any more. Requests are idempotent by token.
 * After an acquire or release that was `unavailable`, the caller removes what it may have left behind, by releasing it
 * again. After every other outcome the store does so itself. An acquire whose token already holds the keys is
 * granted, and makes them a lease of its TTL.
 */
export interface LeaseStore {
  /**
   * The first request for one key is to name no place in line: so it can be plain at several masters. Otherwise, a slow master would write
   * the place down after the caller was granted the lock by the others.
   */
  readonly isPlainFirst?: boolean;
  /** Connects. Resolves when the store replied or its time limit is over. Never rejects for an outage. */
  open(): Promise<void>;
  acquire(request: AcquireRequest): Promise<AcquireOutcome>;
  /**
   * Renews many leases at once; the outcomes are in the order of the requests.
   *
   * @param onDecided called with each outcome as soon as it is known: others may take longer. A store that decides all at once need not
   *   call it
   */
  extend(
    leases: readonly LeaseRenewal[],
    onDecided?: (index: number, outcome: ExtendOutcome) => void,
  ): Promise<readonly ExtendOutcome[]>;
  /**
   * @param lease its `ttlMs` is the longest that may be in force in the store
   * @param lastToken the last fencing token that was used under it, if it is known
   * @param keepMs for how many ms from now the keys are not to be granted to another caller. They keep the token, and
   *   this becomes their TTL. Callers in line are notified when that is over. 0, the default: they are free at once
   */
  release(lease: EndingLease, lastToken?: number, keepMs?: number): Promise<ReleaseOutcome>;
  /**
   * Starts to report releases of keys that this store object stands in line for. Resolves with `'polling'` if that is
   * not possible (no pub/sub): callers then ask in bounded intervals. Idempotent; a second listener replaces the first.
   *
   * @param onDeaf called when releases are no longer reported. The store restores the reports itself, and then calls
   *   the listener without a key
   */
  listen(listener: ReleaseListener, onDeaf?: () => void): Promise<'listening' | 'polling'>;
  /** Leaves the line, and passes on what its token may have been given in the meantime. */
  leave(lease: LeaseRequest, line: LinePlace): Promise<void>;
  /**
   * Returns the state of the nodes.
   *
   * @param withinMs a node that has not replied by then counts as not reachable. Default: each request has its own time
   *   limit
   */
  health(withinMs?: number): Promise<StoreHealth>;
  /** Closes what the store itself opened, and nothing else. */
  close(): Promise<void>;
}

/** What the stores of Redis and of the memory can do besides. `options/one-redis.ts` refuses the calls that need it elsewhere. */
export interface LockStore extends LeaseStore {
  readonly once: OnceStore;
  readonly admin: AdminStore;
  /**
   * Gives a lease another owner token, and `ttlMs` from now, in one step: all keys, or none. The fencing token stays.
   * A key that the new token already holds is left as it is: the request was sent twice. After `unavailable` the store
   * may know the lease under either token. After every other refusal nothing of the new one is left.
   */
  transfer(request: TransferRequest): Promise<TransferOutcome>;
  /** Runs commands in one step with the check that the lease holds its keys. */
  write(request: WriteRequest): Promise<WriteOutcome>;
  /**
   * Sets the limit of a key. It counts for all holders by a limit, whatever limit their tokens name. Callers in line
   * that now fit are admitted, and no holder loses a place. `undefined`: each token counts by its own limit again.
   */
  setLimit(key: string, limit: number | undefined): Promise<SetLimitOutcome>;
}

/** The health of a store that grants no locks, and that tells nothing of its servers. */
export const unhealthy = (problem: string | undefined): StoreHealth => ({
  nodes: [{ node: 'store', reachable: false, quarantinedForMs: 0, problem }],
  quorum: 1,
  hasQuorum: false,
});
