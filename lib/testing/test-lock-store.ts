import { LockStoreUnavailableError, type NodeFailure } from '../errors.js';
import type { FoundKey } from '../store/admin-store.js';
import type {
  AcquireOutcome,
  AcquireRequest,
  ExtendOutcome,
  InspectOutcome,
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

  override forgetWork(): void {
    super.forgetWork();
  }

  override get once(): OnceStore {
    const once = super.once;
    const unlessItFails = <Request extends OnceReference, Outcome>(
      request: Request,
      ask: (request: Request) => Promise<Outcome>,
    ): Promise<Outcome | Unavailable> =>
      this.#fails([request.key]) ? Promise.resolve(UNAVAILABLE) : ask(request);
    return {
      begin: (request) =>
        unlessItFails(request, async (asked) => {
          const outcome = await once.begin(asked);
          if (outcome.status !== 'begun') this.#idle.add(asked.fencingToken);
          return outcome;
        }),
      keep: (request) => unlessItFails(request, (asked) => once.keep(asked)),
      finish: (request) => unlessItFails(request, (asked) => once.finish(asked)),
    };
  }

  override acquire(request: AcquireRequest): Promise<AcquireOutcome> {
    return this.#fails(request.keys) ? Promise.resolve(UNAVAILABLE) : super.acquire(request);
  }

  override async extend(leases: readonly LeaseRequest[]): Promise<readonly ExtendOutcome[]> {
    const outcomes = await Promise.all(
      leases.map(async (lease) =>
        this.#fails(lease.keys) ? UNAVAILABLE : (await super.extend([lease]))[0],
      ),
    );
    return outcomes.map((outcome) => outcome ?? UNAVAILABLE);
  }

  override release(
    lease: LeaseReference,
    lastToken?: number,
    keepMs?: number,
  ): Promise<ReleaseOutcome> {
    return this.#fails(lease.keys)
      ? Promise.resolve(UNAVAILABLE)
      : super.release(lease, lastToken, keepMs);
  }

  override transfer(request: TransferRequest): Promise<TransferOutcome> {
    return this.#fails(request.keys) ? Promise.resolve(UNAVAILABLE) : super.transfer(request);
  }

  protected override look(key: string): FoundKey {
    if (!this.#fails([key])) return super.look(key);
    throw new LockStoreUnavailableError({ operation: 'inspect', keys: [key], nodes: [FAILURE] });
  }

  override inspect(key: string): Promise<InspectOutcome> {
    return this.#fails([key]) ? Promise.resolve(UNAVAILABLE) : super.inspect(key);
  }

  override forceRelease(key: string): Promise<ReleaseOutcome> {
    return this.#fails([key]) ? Promise.resolve(UNAVAILABLE) : super.forceRelease(key);
  }

  override health(): Promise<StoreHealth> {
    return this.#failing === 'everything'
      ? Promise.resolve(unhealthy(FAILURE.message))
      : super.health();
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
