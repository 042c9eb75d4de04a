import { LockConfigurationError, LockStoreUnavailableError } from '../errors.js';
import type { CallSites } from '../lease/call-site.js';
import type { DetachableLock, Lock } from '../lease/lock.js';
import type { AcquireOptions, RunOptions, TryAcquireOptions } from '../options/acquire-options.js';
import { optionsAndWork, optionsOf } from '../options/call-arguments.js';
import { count } from '../options/checks.js';
import type { Scope } from '../sections/scope.js';
import type { LockStore } from '../store/lock-store.js';
import { placesOf } from '../store/owner-token.js';
import { ifRefused, type ScopeOrigin } from './granting.js';

/** Options of calls of a limiter, which has the limit. */
type WithoutLimit<Options> = Omit<Options, 'limit' | 'mode' | 'onLocked' | 'replaceWait'>;

/** How the places of a limiter are used, in all processes. */
export interface LimiterUsage {
  /** The number of places: the number that was set, else that of this limiter. */
  readonly limit: number;
  /** How many places are held. After `setLimit` has lowered the limit, this may be more than `limit` for a while. */
  readonly inUse: number;
  /** How many places are free. Places that are kept for the first caller in line count as free. */
  readonly free: number;
  /**
   * How many entries the line has: one for each process, and for each number of places that its callers want. At most
   * 100 are counted.
   */
  readonly waiting: number;
}

/** The calls of its lock service that a limiter needs. */
interface LimitedLocks {
  readonly sites: CallSites;
  acquireFrom(key: string, options: RunOptions, from: ScopeOrigin): Promise<DetachableLock>;
  openScope(key: string, options: RunOptions, from: ScopeOrigin): Promise<Scope>;
  readonly refuseStream: (value: unknown, lock: Lock) => void;
  readonly present: <E>(error: E) => E;
  presented<T>(answer: Promise<T>): Promise<T>;
}

/** A key with a limit that can be read and changed: `locks.limiter('exports', { limit: 10 })` returns it. */
export class Limiter {
  /** Without `keyPrefix`. */
  readonly key: string;
  /** The limit while none is set. */
  readonly #limit: number;
  readonly #locks: LimitedLocks;
  readonly #store: LockStore;

  /** @internal */
  constructor(key: string, limit: number, locks: LimitedLocks, store: LockStore) {
    this.key = key;
    this.#limit = limit;
    this.#locks = locks;
    this.#store = store;
  }

  /** As `locks.acquire`, with the limit. `places` is how many the call takes; default 1. */
  async acquire(options?: WithoutLimit<AcquireOptions>): Promise<DetachableLock> {
    const site = this.#locks.sites.here(1);
    const given = this.#limited(optionsOf('acquire', options));
    return this.#locks.acquireFrom(this.key, given, { site, isAdjustable: true });
  }

  /** As `locks.tryAcquire`, with the limit. */
  async tryAcquire(options?: WithoutLimit<TryAcquireOptions>): Promise<DetachableLock | null> {
    const site = this.#locks.sites.here(1);
    const given = this.#limited({ ...optionsOf('tryAcquire', options), wait: 0 });
    const from = { site, isAdjustable: true };
    return await this.#locks.acquireFrom(this.key, given, from).catch(ifRefused(() => null));
  }

  /** As `locks.run`, with the limit. */
  run<T>(work: (lock: Lock) => T | PromiseLike<T>): Promise<T>;
  run<T>(options: WithoutLimit<RunOptions>, work: (lock: Lock) => T | PromiseLike<T>): Promise<T>;
  async run<T>(...rest: RunArguments<T>): Promise<T> {
    const [options, work] = optionsAndWork('run', rest);
    const from = { site: this.#locks.sites.here(1), isAdjustable: true };
    const scope = await this.#locks.openScope(this.key, this.#limited(options), from);
    return scope.run(work, this.#locks.refuseStream);
  }

  /**
   * Returns how the places are currently used.
   *
   * @throws LockStoreUnavailableError for an outage
   */
  async usage(): Promise<LimiterUsage> {
    const [found] = await this.#locks.presented(this.#store.admin.look([this.key]));
    const { holders = [], line = [], limit = this.#limit } = found ?? {};
    const inUse = holders.reduce((sum, { token }) => sum + placesOf(token), 0);
    return { limit, inUse, free: Math.max(0, limit - inUse), waiting: line.length };
  }

  /**
   * Sets the number of places for all processes, from now on. After an increase, waiting calls that fit are granted at
   * once. After a decrease, no holder loses its place, and no place is granted until enough are free. A call that wants
   * more places than the limit waits until the limit is raised.
   *
   * The limit is kept in Redis, beside the key, for 30 days after the last grant or renewal of a limited lock of this
   * key. It overrides the limits that calls give. `null` removes it.
   *
   * @throws LockStoreUnavailableError for an outage: it may have been set
   * @throws LockConfigurationError for a number that is not a whole number from 1
   */
  async setLimit(limit: number | null): Promise<void> {
    const checked = limit === null ? undefined : count().resolve(limit, 'limit');
    const outcome = await this.#store.setLimit(this.key, checked);
    if (outcome.status !== 'unavailable') return;
    const { nodes } = outcome;
    throw this.#locks.present(
      new LockStoreUnavailableError({ operation: 'set the limit of', keys: [this.key], nodes }),
    );
  }

  #limited<Options extends object>(options: Options): Options & { readonly limit: number } {
    if ('limit' in options || 'mode' in options)
      throw new LockConfigurationError(
        `The calls of a limiter take neither "limit" nor "mode": its limit is ${String(this.#limit)}, or what setLimit() has set.`,
      );
    return { ...options, limit: this.#limit };
  }
}

type RunArguments<T> =
  | [work: (lock: Lock) => T | PromiseLike<T>]
  | [options: WithoutLimit<RunOptions>, work: (lock: Lock) => T | PromiseLike<T>];
