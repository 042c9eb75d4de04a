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
import type { AttemptEnd, BeginOutcome, OnceReference, OnceStore } from '../store/once-store.js';
import { unhealthy } from '../store/unhealthy.js';
import { MemoryLockStore } from '../store/memory/memory-lock-store.js';

const FAILURE: NodeFailure = {
  node: 'test',
  kind: 'connection',
  message: 'made unavailable by the test',
};
const UNAVAILABLE: Unavailable = { status: 'unavailable', nodes: [FAILURE], transient: false };

/** Long enough for any test: it stands for an owner that does not release. */
const HELD_FOR_MS = 24 * 60 * 60 * 1_000;

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

  /** Another owner asks for a key. */
  hold(key: string): Promise<AcquireOutcome> {
    return super.acquire({ ...stranger(key), ttlMs: HELD_FOR_MS });
  }

  /**
   * Another owner, which holds the key, begins the work of that name. Resolves with the status: `begun`, or that the
   * work is over.
   */
  async begin(key: string): Promise<BeginOutcome['status']> {
    const { status } = await super.once.begin({
      ...attemptOf(key),
      attempts: Infinity,
      lifeMs: HELD_FOR_MS,
      keepMs: HELD_FOR_MS,
    });
    return status;
  }

  /** The other owner ends the work that it has begun. */
  async finish(key: string, end: AttemptEnd, text: string | undefined): Promise<void> {
    await super.once.finish({ ...attemptOf(key), attempt: 1, end, text, lifeMs: HELD_FOR_MS });
  }

  /** The other owner releases a key. */
  async free(key: string): Promise<void> {
    await super.release(stranger(key));
  }

  /** Another owner holds a key from now on, instead of its holder. */
  steal(key: string): void {
    this.seize({ ...stranger(key), ttlMs: HELD_FOR_MS });
  }

  override get once(): OnceStore {
    const once = super.once;
    return {
      begin: (request) =>
        this.#unlessDown([request.key], async () => {
          const outcome = await once.begin(request);
          if (outcome.status !== 'begun') this.#idle.add(request.fencingToken);
          return outcome;
        }),
      keep: (request) => this.#unlessDown([request.key], () => once.keep(request)),
      finish: (request) => this.#unlessDown([request.key], () => once.finish(request)),
    };
  }

  override acquire(request: AcquireRequest): Promise<AcquireOutcome> {
    return this.#unlessDown(request.keys, () => super.acquire(request));
  }

  override async extend(leases: readonly LeaseRequest[]): Promise<readonly ExtendOutcome[]> {
    const outcomes = await Promise.all(
      leases.map((lease) => this.#unlessDown(lease.keys, () => super.extend([lease]))),
    );
    return outcomes.flat();
  }

  override release(
    ...[lease, ...more]: Parameters<MemoryLockStore['release']>
  ): Promise<ReleaseOutcome> {
    return this.#unlessDown(lease.keys, () => super.release(lease, ...more));
  }

  override transfer(request: TransferRequest): Promise<TransferOutcome> {
    return this.#unlessDown(request.keys, () => super.transfer(request));
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

  async #unlessDown<T>(keys: readonly string[], ask: () => Promise<T>): Promise<T | Unavailable> {
    return this.#fails(keys) ? UNAVAILABLE : ask();
  }

  #fails(keys: readonly string[]): boolean {
    const failing = this.#failing;
    if (typeof failing === 'string') return failing === 'everything';
    return keys.some((key) => failing.has(key));
  }
}

const attemptOf = (key: string): OnceReference => ({
  ...{ key, token: `stranger:${key}` },
  owner: 'stranger',
  fencingToken: 0,
});

const stranger = (key: string): LeaseReference => ({ keys: [key], token: `stranger:${key}` });
