import { redact } from '../options/redact.js';
import type { Clock } from '../time/clock.js';
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
  Unavailable,
} from './lock-store.js';

/**
 * Holds any store, an application's own too, to the port's contract: what it throws, and every answer that the port does not know,
 * becomes `unavailable`.
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

  inspect(key: string): Promise<InspectOutcome> {
    return guard(INSPECT, () => this.#store.inspect(key));
  }

  forceRelease(key: string): Promise<ReleaseOutcome> {
    return guard(RELEASE, () => this.#store.forceRelease(key));
  }

  async health(): Promise<StoreHealth> {
    try {
      if (this.#store.health !== undefined) return await this.#store.health();
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
      // Best effort: what stays in line is told of one release in vain, and expires.
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

/** Of every status: whether the rest of the outcome is what it should be. */
type Shapes<Outcome extends { readonly status: string }> = Readonly<
  Record<Outcome['status'], (outcome: Readonly<Record<string, unknown>>) => boolean>
>;

const isText = (value: unknown): boolean => typeof value === 'string';

/** `Infinity` is one, `NaN` is not. */
const isDuration = (value: unknown): boolean => typeof value === 'number' && value >= 0;

const isFencingToken = (value: unknown): boolean =>
  Number.isSafeInteger(value) && Number(value) > 0;

const isNode = (value: unknown): boolean => {
  const { node, kind, message } = Object(value) as Record<string, unknown>;
  return isText(node) && isText(kind) && isText(message);
};

const anything = (): boolean => true;

const UNAVAILABLE: Shapes<Unavailable> = {
  unavailable: ({ nodes }) => Array.isArray(nodes) && Array.from(nodes).every(isNode),
};

const ACQUIRE: Shapes<AcquireOutcome> = {
  ...UNAVAILABLE,
  granted: ({ fencingToken, turns = 1, othersWait = false }) =>
    isFencingToken(fencingToken) && isFencingToken(turns) && typeof othersWait === 'boolean',
  held: ({ key, remainingMs, checkAgainMs, contended = true, ticket = 0, holder = '' }) =>
    isText(key) &&
    isText(holder) &&
    isDuration(remainingMs) &&
    isDuration(checkAgainMs) &&
    contended === true &&
    isDuration(ticket),
};

const EXTEND: Shapes<ExtendOutcome> = {
  ...UNAVAILABLE,
  extended: anything,
  lost: ({ reason }) => reason === 'stolen' || reason === 'released-elsewhere',
};

const RELEASE: Shapes<ReleaseOutcome> = {
  ...UNAVAILABLE,
  released: anything,
  'not-held': anything,
};

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;

const BEGIN: Shapes<BeginOutcome> = {
  ...UNAVAILABLE,
  begun: ({ attempt }) => isCount(attempt),
  done: ({ attempts, value = '' }) => isCount(attempts) && isText(value),
  exhausted: ({ attempts, error = '' }) => isCount(attempts) && isText(error),
  lost: ({ attempts }) => isCount(attempts),
};

const FINISH: Shapes<FinishOutcome> = {
  ...UNAVAILABLE,
  accepted: anything,
  superseded: anything,
};

const INSPECT: Shapes<InspectOutcome> = {
  ...UNAVAILABLE,
  free: anything,
  held: ({ remainingMs }) => isDuration(remainingMs),
};

async function guard<Outcome extends { readonly status: string }>(
  shapes: Shapes<Outcome>,
  request: () => unknown,
): Promise<Outcome | Unavailable> {
  try {
    const outcome = await request();
    const fields = Object(outcome) as Readonly<Record<string, unknown>>;
    const status = String(fields.status);
    const isWhole = Object.hasOwn(shapes, status) && shapes[status as Outcome['status']](fields);
    if (isWhole) return outcome as Outcome;
    return faulty(`the answer is none that a store may give (status: ${status})`);
  } catch (error) {
    return faulty(error);
  }
}

const unhealthy = (problem: string | undefined): StoreHealth => ({
  nodes: [{ node: 'store', reachable: false, quarantinedForMs: 0, problem }],
  quorum: 1,
  hasQuorum: false,
});

function faulty(error: unknown): Unavailable {
  return {
    status: 'unavailable',
    nodes: [{ node: 'store', kind: 'error', message: redact(textOf(error)) }],
    transient: false,
  };
}

/** Anything can be thrown, also what has no text. */
function textOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error);
  } catch {
    return 'an error without text';
  }
}
