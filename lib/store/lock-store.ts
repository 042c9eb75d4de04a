import type { NodeFailure } from '../errors.js';

/** What a lease is called by in the store: its keys and the secret that proves ownership. */
export interface LeaseReference {
  /** Sorted, without duplicates, without `keyPrefix`. */
  readonly keys: readonly string[];
  /** Owner token: unguessable, fresh for every attempt. */
  readonly token: string;
}

export interface LeaseRequest extends LeaseReference {
  readonly ttlMs: number;
}

export interface AcquireRequest extends LeaseRequest {
  /**
   * Whether to stand in line when refused: the store then calls the listener given to `listen` once the key that was busy
   * is released. Only after `listen` has answered `'listening'`.
   */
  readonly standInLine: boolean;
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
  /** The first key that was busy; in line, the caller stands at this one. */
  readonly key: string;
  /** What is left of the holder's lease, in ms; `Infinity` for a lock without TTL that other software set. */
  readonly remainingMs: number;
  /** When to look again at the latest, in ms: less than `remainingMs` where the holder will not tell us when it is done. */
  readonly checkAgainMs: number;
}

export type AcquireOutcome =
  { readonly status: 'granted'; readonly fencingToken: number } | Held | Unavailable;

export type ExtendOutcome =
  | { readonly status: 'extended' }
  | { readonly status: 'lost'; readonly reason: 'stolen' | 'released-elsewhere' }
  | Unavailable;

export type ReleaseOutcome =
  { readonly status: 'released' } | { readonly status: 'not-held' } | Unavailable;

export type InspectOutcome =
  | { readonly status: 'free' }
  | { readonly status: 'held'; readonly remainingMs: number }
  | Unavailable;

/** Called with a key that was released, or without one when any release may have been missed (after a reconnect). */
export type ReleaseListener = (key?: string) => void;

/**
 * Where leases live. Every method settles within its own time limit, and none rejects for a fault of the store: an outage is
 * the outcome `unavailable`, never confused with a refusal (`held`) or a loss (`lost`).
 *
 * A lease is all or nothing over its keys. Requests are idempotent by token.
 */
export interface LockStore {
  /** Connects; resolves when the store answered or its time limit is over. Never rejects for an outage. */
  open?(): Promise<void>;
  acquire(request: AcquireRequest): Promise<AcquireOutcome>;
  /** Renews many leases at once; the outcomes are in the order of the requests. */
  extend(leases: readonly LeaseRequest[]): Promise<readonly ExtendOutcome[]>;
  release(lease: LeaseReference): Promise<ReleaseOutcome>;
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
  /** Leaves the line at a key. */
  leave(key: string): Promise<void>;
  /** Closes what the store itself opened, and nothing else. */
  close(): Promise<void>;
}
