import { redact } from '../errors/redact.js';
import type { Clock } from '../time/clock.js';
import type { AdminStore } from './admin-store.js';
import type {
  BeginOutcome,
  BeginRequest,
  FinishOutcome,
  FinishRequest,
  KeepRequest,
  OnceStore,
} from './once-store.js';
import type {
  AcquireOutcome,
  AcquireRequest,
  ExtendOutcome,
  InspectOutcome,
  LeaseRenewal,
  LeaseRequest,
  LinePlace,
  LockStore,
  ReleaseListener,
  ReleaseOutcome,
  StoreHealth,
  TransferOutcome,
  TransferRequest,
  WriteOutcome,
  WriteRequest,
} from './lock-store.js';
import {
  ACQUIRE,
  BEGIN,
  EXTEND,
  faulty,
  FINISH,
  guard,
  INSPECT,
  RELEASE,
  SET_LIMIT,
  textOf,
  TRANSFER,
  WRITE,
} from './outcome-shapes.js';
import { unhealthy } from './unhealthy.js';

/**
 * Holds every store, including a custom one, to the port's contract. An error that it throws, and an outcome that the
 * port does not know, becomes `unavailable`.
 */
export class GuardedStore implements LockStore {
  readonly #store: LockStore;
  readonly #clock: Clock;
  #listener: ReleaseListener | undefined;
  #onDeaf: (() => void) | undefined;

  constructor(store: LockStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  get once(): OnceStore | undefined {
    const { once } = this.#store;
    return once === undefined ? undefined : new GuardedOnceStore(once);
  }

  /** It may reject: nothing that decides on a lock depends on it. */
  get admin(): AdminStore | undefined {
    return this.#store.admin;
  }

  async open(): Promise<void> {
    await this.#store.open?.();
  }

  acquire(request: AcquireRequest): Promise<AcquireOutcome> {
    return guard(ACQUIRE, () => this.#store.acquire(request));
  }

  async extend(leases: readonly LeaseRenewal[]): Promise<readonly ExtendOutcome[]> {
    try {
      const outcomes: unknown = await this.#store.extend(leases);
      if (!Array.isArray(outcomes)) throw new Error('the answer to renewals is no list');
      if (outcomes.length !== leases.length) {
        throw new Error(
          `${String(outcomes.length)} outcomes for ${String(leases.length)} renewals`,
        );
      }
      // Each for itself: one that is malformed does not spoil the others. Array.from also visits holes.
      return await Promise.all(
        Array.from(outcomes, (outcome: unknown) => guard<ExtendOutcome>(EXTEND, () => outcome)),
      );
    } catch (error) {
      const fault = faulty(error);
      return leases.map(() => fault);
    }
  }

  release(lease: LeaseRequest, lastToken?: number, keepMs?: number): Promise<ReleaseOutcome> {
    return guard(RELEASE, () => this.#store.release(lease, lastToken, keepMs));
  }

  get transfer(): ((request: TransferRequest) => Promise<TransferOutcome>) | undefined {
    const store = this.#store;
    if (store.transfer === undefined) return undefined;
    return (request) => guard(TRANSFER, () => store.transfer?.(request));
  }

  get write(): ((request: WriteRequest) => Promise<WriteOutcome>) | undefined {
    const store = this.#store;
    if (store.write === undefined) return undefined;
    return (request) => guard(WRITE, () => store.write?.(request));
  }

  get setLimit(): NonNullable<LockStore['setLimit']> | undefined {
    const store = this.#store;
    if (store.setLimit === undefined) return undefined;
    return (key, limit) => guard(SET_LIMIT, () => store.setLimit?.(key, limit));
  }

  inspect(key: string): Promise<InspectOutcome> {
    return guard(INSPECT, () => this.#store.inspect(key));
  }

  forceRelease(key: string): Promise<ReleaseOutcome> {
    return guard(RELEASE, () => this.#store.forceRelease(key));
  }

  async health(withinMs?: number): Promise<StoreHealth> {
    try {
      if (this.#store.health !== undefined) return await this.#store.health(withinMs);
      const since = this.#clock.now().monotonicMs;
      const outcome = await this.inspect('health');
      if (outcome.status === 'unavailable') return unhealthy(outcome.nodes[0]?.message);
      const latencyMs = this.#clock.now().monotonicMs - since;
      const node = { node: 'store', reachable: true, latencyMs, quarantinedForMs: 0 };
      return { nodes: [node], quorum: 1, hasQuorum: true };
    } catch (error) {
      return unhealthy(redact(textOf(error)));
    }
  }

  async listen(listener: ReleaseListener, onDeaf?: () => void): Promise<'listening' | 'polling'> {
    this.#listener = listener;
    this.#onDeaf = onDeaf;
    try {
      const answer: unknown = await this.#store.listen(this.#tellRelease, this.#tellDeaf);
      return answer === 'listening' ? 'listening' : 'polling';
    } catch {
      return 'polling';
    }
  }

  async leave(lease: LeaseRequest, line: LinePlace): Promise<void> {
    try {
      await this.#store.leave(lease, line);
    } catch {
      // Best effort: a place that stays in line is called once without effect, and expires.
    }
  }

  async close(): Promise<void> {
    this.#listener = undefined;
    this.#onDeaf = undefined;
    await this.#store.close();
  }

  /** A store that others use too outlives the service. It keeps these two then, and not all that the service holds. */
  readonly #tellRelease: ReleaseListener = (key, call) => {
    this.#listener?.(key, call);
  };

  readonly #tellDeaf = (): void => {
    this.#onDeaf?.();
  };
}

class GuardedOnceStore implements OnceStore {
  readonly #once: OnceStore;

  constructor(once: OnceStore) {
    this.#once = once;
  }

  begin(request: BeginRequest): Promise<BeginOutcome> {
    return guard(BEGIN, () => this.#once.begin(request));
  }

  keep(request: KeepRequest): Promise<FinishOutcome> {
    return guard(FINISH, () => this.#once.keep(request));
  }

  finish(request: FinishRequest): Promise<FinishOutcome> {
    return guard(FINISH, () => this.#once.finish(request));
  }
}
