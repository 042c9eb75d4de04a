import type {
  AcquireOutcome,
  AcquireRequest,
  ExtendOutcome,
  InspectOutcome,
  LeaseReference,
  LeaseRequest,
  LockStore,
  ReleaseListener,
  ReleaseOutcome,
  Unavailable,
} from './lock-store.js';

/**
 * Holds any store, an application's own too, to the port's contract: what it throws becomes `unavailable`, and a fencing token
 * that is no safe positive integer, or a list of outcomes of the wrong length, is not trusted.
 */
export class GuardedStore implements LockStore {
  readonly #store: LockStore;

  constructor(store: LockStore) {
    this.#store = store;
  }

  async open(): Promise<void> {
    await this.#store.open?.();
  }

  async acquire(request: AcquireRequest): Promise<AcquireOutcome> {
    const outcome = await guard(() => this.#store.acquire(request));
    if (outcome.status !== 'granted' || isFencingToken(outcome.fencingToken)) return outcome;
    return faulty(
      `the fencing token ${String(outcome.fencingToken)} is not a positive safe integer`,
    );
  }

  async extend(leases: readonly LeaseRequest[]): Promise<readonly ExtendOutcome[]> {
    try {
      const outcomes = await this.#store.extend(leases);
      if (outcomes.length === leases.length) return outcomes;
      const fault = faulty(
        `${String(outcomes.length)} outcomes for ${String(leases.length)} renewals`,
      );
      return leases.map(() => fault);
    } catch (error) {
      return leases.map(() => faulty(error));
    }
  }

  release(lease: LeaseReference): Promise<ReleaseOutcome> {
    return guard(() => this.#store.release(lease));
  }

  inspect(key: string): Promise<InspectOutcome> {
    return guard(() => this.#store.inspect(key));
  }

  forceRelease(key: string): Promise<ReleaseOutcome> {
    return guard(() => this.#store.forceRelease(key));
  }

  async listen(listener: ReleaseListener): Promise<'listening' | 'polling'> {
    try {
      return await this.#store.listen(listener);
    } catch {
      return 'polling';
    }
  }

  async leave(key: string): Promise<void> {
    // Best effort: what stays in line is told of one release in vain, and expires.
    await guard(() => this.#store.leave(key));
  }

  async close(): Promise<void> {
    await this.#store.close();
  }
}

const isFencingToken = (value: unknown): boolean =>
  Number.isSafeInteger(value) && Number(value) > 0;

function faulty(error: unknown): Unavailable {
  const message = error instanceof Error ? error.message : String(error);
  return {
    status: 'unavailable',
    nodes: [{ node: 'store', kind: 'error', message }],
    transient: false,
  };
}

async function guard<T>(request: () => Promise<T>): Promise<T | Unavailable> {
  try {
    return await request();
  } catch (error) {
    return faulty(error);
  }
}
