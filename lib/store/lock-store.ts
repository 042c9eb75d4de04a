import type { NodeFailure } from '../errors.js';
import type { AdminStore } from './admin-store.js';
import type { OnceStore } from './once-store.js';

/** What a lease is called by in the store: its keys and the secret that proves ownership. */
export interface LeaseReference {
  /** Sorted, without duplicates, without `keyPrefix`. */
  readonly keys: readonly string[];
  /**
   * Owner token: unguessable, fresh for every attempt. It says whether it holds the keys alone or together with others: `holdModeOf`. A
   * store that takes every lock for an exclusive one is safe, only slower.
   */
  readonly token: string;
}

export interface LeaseRequest extends LeaseReference {
  readonly ttlMs: number;
}

/** A lease to be renewed, and what its holder knows of it. */
export interface LeaseRenewal extends LeaseRequest {
  readonly fencingToken: number;
  /** What was left of its validity when the renewal was asked for, in ms. */
  readonly validForMs: number;
}

/** Who waits in the store's line for a key. */
export interface LinePlace {
  /** Names the waiting callers of this process; what the store reports is addressed to it, or to the token of the request. */
  readonly id: string;
  /** TTL of the request that first stood there, in ms. */
  readonly ttlMs: number;
  /** The place that an earlier request was given. */
  readonly ticket?: number | undefined;
}

export interface AcquireRequest extends LeaseRequest {
  /** Where to stand in line when refused, if at all. Only after `listen` has answered `'listening'`. */
  readonly line?: LinePlace | undefined;
  /**
   * The fencing token of those who hold the keys together, and whom this caller may join although others wait: it stood in line with one
   * who was let in.
   */
  readonly joins?: number | undefined;
  /** The first fencing token that was reserved with a claim, as the call said (`LineCall.claim`): it is this lease's. */
  readonly claimed?: number | undefined;
  /** An earlier try was `contended`: votes are not to be split again. */
  readonly isSplit?: boolean | undefined;
}

/** The store gave no answer, or one that cannot be trusted. */
export interface Unavailable {
  readonly status: 'unavailable';
  readonly nodes: readonly NodeFailure[];
  /** Whether the same request may succeed later without anybody changing a setting. */
  readonly transient: boolean;
  /** The request never left this process, so it can have left nothing behind. */
  readonly sent?: false;
}

export interface Held {
  readonly status: 'held';
  /** The first key that was busy. */
  readonly key: string;
  /** What is left of the holder's lease, in ms; `Infinity` for a lock without TTL that other software set. */
  readonly remainingMs: number;
  /** When to look again at the latest, in ms: less than `remainingMs` where the holder will not tell us when it is done. */
  readonly checkAgainMs: number;
  /**
   * Nobody is sure to hold it: several asked in the same moment, and the votes of the nodes were split. Worth asking again after a
   * short random pause.
   */
  readonly contended?: true;
  /**
   * The place in line that this token was given, in stores where the first in line gets the lock: to be asked with again, with the same
   * token, and with other tokens after that.
   */
  readonly ticket?: number | undefined;
  /** The limit that others state who hold the key, where it is another one than the caller's and none was set. */
  readonly otherLimit?: number | undefined;
  /** The token that holds it, where that is known: to tell our own holders from others, and never to be told to anybody. */
  readonly holder?: string | undefined;
}

export interface Granted {
  readonly status: 'granted';
  readonly fencingToken: number;
  /** How many fencing tokens from that one on belong to this lease, for turns that callers take under it. Default 1. */
  readonly turns?: number | undefined;
  /** As in `Held`. */
  readonly otherLimit?: number | undefined;
  /** Whether others stand in line for one of the keys. Default: nobody knows. */
  readonly othersWait?: boolean | undefined;
}

export type AcquireOutcome = Granted | Held | Unavailable;

export type ExtendOutcome =
  | { readonly status: 'extended' }
  | { readonly status: 'lost'; readonly reason: 'stolen' | 'released-elsewhere' }
  | Unavailable;

export type ReleaseOutcome =
  { readonly status: 'released' } | { readonly status: 'not-held' } | Unavailable;

/** What has become of a limit that was to be set. */
export type SetLimitOutcome = { readonly status: 'set' } | Unavailable;

/** A lease that is to go on under another owner token. */
export interface TransferRequest extends LeaseRequest {
  /** The token that takes the place of `token`. It holds the keys in the same mode, or in one that lets others in. */
  readonly to: string;
  /**
   * The fencing token that those who join the lease from now on have together with it, where it was exclusive until now. Missing where the
   * mode stays.
   */
  readonly phase?: number | undefined;
  /** The last fencing token that belongs to the lease. */
  readonly lastToken: number;
  /**
   * Who has the lease under the new token: this service, which renews it, or nobody yet. A lease that nobody has is not brought to nodes
   * that lack it.
   */
  readonly holder: 'this service' | 'nobody';
}

export type TransferOutcome =
  | { readonly status: 'transferred' }
  | {
      readonly status: 'lost';
      /**
       * `'gone'`: nobody holds a key. `'attached'`: somebody holds it, and the key was not granted since the lease was: the lease goes on
       * under yet another token. `'stolen'`: the key was granted to somebody else since.
       */
      readonly reason: 'gone' | 'attached' | 'stolen';
    }
  | Unavailable;

/** An upgradeable lease that is to be exclusive. */
export interface UpgradeRequest extends LeaseRequest {
  /** Where to stand in line when refused, if at all: before all who wait. */
  readonly line?: LinePlace | undefined;
}

export type UpgradeOutcome =
  | Granted
  /** Others hold a key beside it. */
  | Held
  /** Its lease does not hold a key any more. */
  | { readonly status: 'lost'; readonly reason: 'stolen' | 'released-elsewhere' }
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
  /** Nobody knows whether they were run. */
  | Unavailable;

export type InspectOutcome =
  | { readonly status: 'free' }
  | { readonly status: 'held'; readonly remainingMs: number }
  | Unavailable;

/** How one node of a store is. */
export interface NodeHealth {
  /** `host:port`, never with credentials. */
  readonly node: string;
  readonly reachable: boolean;
  /** How long it took to answer, in ms; `undefined` when it did not. */
  readonly latencyMs?: number | undefined;
  /** By how many ms its clock is ahead of this machine's, to within half the latency; negative when it is behind. */
  readonly clockOffsetMs?: number | undefined;
  /** For so many ms more it grants no locks, because it may have forgotten leases (`restartGuard`); 0 when it does. */
  readonly quarantinedForMs: number;
  /** What is wrong, without secrets. */
  readonly problem?: string | undefined;
}

export interface StoreHealth {
  readonly nodes: readonly NodeHealth[];
  /** How many of the nodes have to agree on a lock; of a Cluster, which counts as one, all masters are listed. */
  readonly quorum: number;
  /** Whether so many are there that locks can be granted. */
  readonly hasQuorum: boolean;
}

/** What a store reports of a key. */
export interface LineCall {
  /** The id or the token of those who should look again; everybody else need not. */
  readonly to: string;
  /** 0: now. Else: if nothing was reported until then, because the lock was given to somebody who may not be there. */
  readonly inMs: number;
  /** What was given to it, where the store says more than that. */
  readonly claim?: LineClaim | undefined;
}

/** A key that was given to somebody in line, for so long that it can be made a lease. */
export interface LineClaim {
  readonly fencingToken: number;
  /** How many fencing tokens from that one on belong to it. */
  readonly turns: number;
  readonly ttlMs: number;
  /**
   * How old it is at the most, in ms: a caller may begin with what is left, and have it renewed at the same time. Missing where nobody knows:
   * then it has to be made a lease first, by acquiring with the token that was called.
   */
  readonly ageMs?: number | undefined;
}

/**
 * Called with a key that was released or that somebody in line was given, or without one when any such report may have been missed
 * (after a reconnect).
 */
export type ReleaseListener = (key?: string, call?: LineCall) => void;

/**
 * Where leases live. Every method settles within its own time limit, and none rejects for a fault of the store: an outage is
 * the outcome `unavailable`, never confused with a refusal (`held`) or a loss (`lost`).
 *
 * A lease is all or nothing over its keys. Requests are idempotent by token. What an acquire or a release that was `unavailable` may have
 * left behind is for the caller to remove, by releasing it again; after every other answer the store sees to that itself. An acquire
 * whose token holds the keys already is granted, and makes them a lease of its TTL.
 */
export interface LockStore {
  /** Where work that is to be done once is kept account of; without it there is no `runOnce`. */
  readonly once?: OnceStore;
  /** What operators need; without it there is no `LockAdmin`. */
  readonly admin?: AdminStore;
  /** Connects; resolves when the store answered or its time limit is over. Never rejects for an outage. */
  open?(): Promise<void>;
  acquire(request: AcquireRequest): Promise<AcquireOutcome>;
  /** Renews many leases at once; the outcomes are in the order of the requests. */
  extend(leases: readonly LeaseRenewal[]): Promise<readonly ExtendOutcome[]>;
  /**
   * @param lease its `ttlMs` is the longest that may be in force in the store
   * @param lastToken the last fencing token that was used under it, where that is known
   * @param keepMs for so long from now the keys are not to be given to anybody: they keep the token, and this becomes their TTL. Who
   * stands in line is told when that is over. 0, the default: they are free at once
   */
  release(lease: LeaseRequest, lastToken?: number, keepMs?: number): Promise<ReleaseOutcome>;
  /**
   * Gives a lease another owner token, and `ttlMs` from now, in one step: all keys, or none. The fencing token stays. Where the new token
   * holds the keys already, it is a request sent twice. After `unavailable` the store may know the lease under either token; after every
   * other refusal nothing of the new one is left. Without it there is no `detach`.
   */
  transfer?(request: TransferRequest): Promise<TransferOutcome>;
  /**
   * Makes an upgradeable lease exclusive as soon as nobody holds one of its keys beside it. Its token is that of the lease, and what is granted
   * is held under the token of the mode `'exclusive'` (`tokenIn`); the lease never ends in between. While it stands in line (under
   * `upgradeToken`), nobody joins those who hold the keys. After `unavailable` the store may know it in either mode, and keeps others from
   * it as the stronger one; `transfer` to the weaker one settles that. Without it no lock can be upgraded.
   */
  upgrade?(request: UpgradeRequest): Promise<UpgradeOutcome>;
  /** Runs commands in one step with the check that the lease holds its keys. Without it there is no `guarded`. */
  write?(request: WriteRequest): Promise<WriteOutcome>;
  /**
   * Sets the limit of a key, which counts for all who hold it by a limit, whatever limit their tokens state. Those in line who fit from now on
   * are let in; nobody loses a place. `undefined`: each goes by its own limit again. Without it a limiter cannot `setLimit`.
   */
  setLimit?(key: string, limit: number | undefined): Promise<SetLimitOutcome>;
  inspect(key: string): Promise<InspectOutcome>;
  /** Ends whoever's lease of the key. */
  forceRelease(key: string): Promise<ReleaseOutcome>;
  /**
   * Starts to report releases of keys that this store object stands in line for. Answers `'polling'` where that is not
   * possible (no pub/sub): callers then look again in bounded intervals. Idempotent; a second listener replaces the first.
   *
   * @param onDeaf called when releases are reported no longer; the store sees to it itself that they are again, and then calls
   *   the listener without a key.
   */
  listen(listener: ReleaseListener, onDeaf?: () => void): Promise<'listening' | 'polling'>;
  /**
   * How the nodes are; a store that cannot tell is asked for a key instead.
   *
   * @param withinMs a node that has not answered by then counts as not reachable. Default: each request has its own time limit
   */
  health?(withinMs?: number): Promise<StoreHealth>;
  /** Leaves the line, and passes on what its token may have been given in the meantime. */
  leave(lease: LeaseRequest, line: LinePlace): Promise<void>;
  /** Closes what the store itself opened, and nothing else. */
  close(): Promise<void>;
}
