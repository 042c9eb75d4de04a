import { LockStoreUnavailableError, type NodeFailure } from '../errors.js';
import type { FoundKey } from '../store/admin-store.js';
import type {
  AcquireOutcome,
  AcquireRequest,
  ExtendOutcome,
  LeaseReference,
  LeaseRequest,
  ReleaseOutcome,
  TransferOutcome,
  TransferRequest,
  StoreHealth,
  Unavailable,
} from '../store/lock-store.js';
import { unhealthy } from '../store/lock-store.js';
import type { OnceReference, OnceStore } from '../store/once-store.js';
import { MemoryLockStore } from '../store/memory/memory-lock-store.js';

const FAILURE: NodeFailure = {
  node: 'test',
  kind: 'connection',
  message: 'made unavailable by the test',
};
const UNAVAILABLE: Unavailable = { status: 'unavailable', nodes: [FAILURE], transient: false };

/** `setTimeout` does not wait at all for longer ones. The other owner holds its locks for longer than any clock of a test. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The token of the other owner. */
export const STRANGER = 'stranger';

/** The memory store, with outages and another owner. An outage does not affect the other owner. */
export class TestLockStore extends MemoryLockStore {
  #failing: 'nothing' | 'everything' | ReadonlySet<string> = 'nothing';
  /** The fencing tokens of locks under which no work was done, because it was already over. */
  readonly #idle = new Set<number>();
  #closed = false;

  /** Whether its service has shut down. */
  get isClosed(): boolean {
    return this.#closed;
  }

  override async close(): Promise<void> {
    await super.close();
    this.#closed = true;
  }

  /** Whether a lock was granted only to find the work done or exhausted. */
  wasIdle(fencingToken: number): boolean {
    return this.#idle.has(fencingToken);
  }

  fail(keys?: readonly string[]): void {
    this.#failing = keys === undefined ? 'everything' : new Set(keys);
  }

  recover(): void {
    this.#failing = 'nothing';
  }

  override get once(): OnceStore {
    const once = super.once;
    return {
      begin: (request) =>
        this.#unlessDown(request, async () => {
          const outcome = await once.begin(request);
          if (outcome.status !== 'begun') this.#idle.add(request.fencingToken);
          return outcome;
        }),
      keep: (request) => this.#unlessDown(request, () => once.keep(request)),
      finish: (request) => this.#unlessDown(request, () => once.finish(request)),
    };
  }

  override async acquire(request: AcquireRequest): Promise<AcquireOutcome> {
    const outcome = await this.#unlessDown(request, () => super.acquire(request));
    if (outcome.status !== 'held') return outcome;
    return { ...outcome, remainingMs: Math.min(outcome.remainingMs, LONGEST_TIMER_MS) };
  }

  override async extend(leases: readonly LeaseRequest[]): Promise<readonly ExtendOutcome[]> {
    const outcomes = await Promise.all(
      leases.map((lease) => this.#unlessDown(lease, () => super.extend([lease]))),
    );
    return outcomes.flat();
  }

  override release(
    ...[lease, ...more]: Parameters<MemoryLockStore['release']>
  ): Promise<ReleaseOutcome> {
    return this.#unlessDown(lease, () => super.release(lease, ...more));
  }

  override transfer(request: TransferRequest): Promise<TransferOutcome> {
    return this.#unlessDown(request, () => super.transfer(request));
  }

  protected override look(key: string): FoundKey {
    if (!this.#fails([key])) return super.look(key);
    throw new LockStoreUnavailableError({ operation: 'inspect', keys: [key], nodes: [FAILURE] });
  }

  override health(): Promise<StoreHealth> {
    return this.#failing === 'everything'
      ? Promise.resolve(unhealthy(FAILURE.message))
      : super.health();
  }

  async #unlessDown<T>(
    request: LeaseReference | OnceReference,
    ask: () => Promise<T>,
  ): Promise<T | Unavailable> {
    const keys = 'keys' in request ? request.keys : [request.key];
    return this.#fails(keys) && request.token !== STRANGER ? UNAVAILABLE : ask();
  }

  #fails(keys: readonly string[]): boolean {
    const failing = this.#failing;
    if (typeof failing === 'string') return failing === 'everything';
    return keys.some((key) => failing.has(key));
  }
}
