import { describe, textOf } from '../../errors/describe.js';
import { redact } from '../../errors/redact.js';
import { DRIVER_NODE } from '../../errors/store-unavailable.js';
import { Scheduler } from '../../time/scheduler.js';
import { TimeLimit } from '../../time/time-limit.js';
import type { Runtime } from '../../time/runtime.js';
import type {
  AcquireOutcome,
  ExtendOutcome,
  Held,
  LeaseRequest,
  LeaseStore,
  ReleaseOutcome,
  StoreHealth,
  Unavailable,
} from '../lock-store.js';
import { newOwnerToken } from '../owner-token.js';
import type { LockDriver } from './lock-driver.js';

/** When a line asks again, in ms: a random time, so that waiting processes do not ask at the same moment. */
const POLL_MS = { from: 100, to: 300 };

/** A key that expires is free for others this much later, in ms. */
const EXPIRY_MS = 10;

/** What a health check acquires, and for how long at most. No key of a caller has braces. */
const HEALTH = { key: '{health}', ttlMs: 5_000 };

interface DriverStoreOptions {
  readonly driver: LockDriver;
  readonly keyPrefix: string;
  readonly nodeTimeoutMs: number;
  readonly runtime: Runtime;
}

/** A reply that the driver must not give: another try would get the same. */
class MalformedReply extends Error {}

class TimeIsUp extends Error {}

/**
 * Makes of a driver what the queue and the leases need. Several keys are taken one after the other, and released if
 * one of them is held. The engine refuses whatever needs more than a driver can do (`options/one-redis.ts`).
 */
export class DriverStore implements LeaseStore {
  readonly #driver: LockDriver;
  readonly #keyPrefix: string;
  readonly #timeoutMs: number;
  readonly #scheduler: Scheduler;

  constructor({ driver, keyPrefix, nodeTimeoutMs, runtime }: DriverStoreOptions) {
    this.#driver = driver;
    this.#keyPrefix = keyPrefix;
    this.#timeoutMs = nodeTimeoutMs;
    this.#scheduler = new Scheduler(runtime);
  }

  /** A driver is ready, or connects by itself. */
  open(): Promise<void> {
    return Promise.resolve();
  }

  acquire(lease: LeaseRequest): Promise<AcquireOutcome> {
    const { keys, ttlMs } = lease;
    const { runtime } = this.#scheduler;
    const since = runtime.now().monotonicMs;
    return orUnavailable(async () => {
      for (const [index, key] of keys.entries()) {
        const reply = await this.#ask('acquire', key, lease);
        if (reply.status !== 'held') continue;
        const taken = keys.slice(0, index).reverse();
        const released = await this.release({ ...lease, keys: taken });
        return released.status === 'unavailable' ? released : this.#held(key, reply.remainingMs);
      }
      const tookMs = runtime.now().monotonicMs - since;
      if (tookMs >= ttlMs)
        throw new TimeIsUp(
          `acquire() took ${tookMs.toFixed(0)} ms for ${String(keys.length)} keys, and the TTL is ${String(ttlMs)} ms`,
        );
      return { status: 'granted', fencingToken: 0 };
    });
  }

  extend(
    leases: readonly LeaseRequest[],
    onDecided?: (index: number, outcome: ExtendOutcome) => void,
  ): Promise<readonly ExtendOutcome[]> {
    return Promise.all(
      leases.map(async (lease, index) => {
        const outcome = await orUnavailable<ExtendOutcome>(async () => {
          for (const key of lease.keys)
            if ((await this.#ask('extend', key, lease)).status === 'lost')
              return { status: 'lost', reason: 'released-elsewhere' };
          return { status: 'extended' };
        });
        onDecided?.(index, outcome);
        return outcome;
      }),
    );
  }

  /** Asks for all keys at once: a failure at one of them keeps no other one. */
  release(lease: LeaseRequest, _lastToken?: number, keepMs = 0): Promise<ReleaseOutcome> {
    return orUnavailable<ReleaseOutcome>(async () => {
      const operation = keepMs > 0 ? 'extend' : 'release';
      const asked = lease.keys.map((key) => this.#ask(operation, key, lease, keepMs));
      await Promise.allSettled(asked);
      const replies = await Promise.all(asked);
      const isLost = replies.some(({ status }) => status === 'lost' || status === 'not-held');
      return { status: isLost ? 'not-held' : 'released' };
    });
  }

  listen(): Promise<'polling'> {
    return Promise.resolve('polling');
  }

  /** Nothing of a waiting call stands in the store. */
  leave(): Promise<void> {
    return Promise.resolve();
  }

  /** Does what a grant does. A key that another process checks at the moment is as good as a free one. */
  async health(): Promise<StoreHealth> {
    const { runtime } = this.#scheduler;
    const since = runtime.now().monotonicMs;
    const lease = { keys: [HEALTH.key], token: newOwnerToken(runtime), ttlMs: HEALTH.ttlMs };
    const acquired = await this.acquire(lease);
    const outcome = acquired.status === 'granted' ? await this.release(lease) : acquired;
    const problem = outcome.status === 'unavailable' ? outcome.nodes[0]?.message : undefined;
    const node = {
      node: DRIVER_NODE,
      reachable: problem === undefined,
      quarantinedForMs: 0,
      problem,
    };
    const latencyMs = problem === undefined ? runtime.now().monotonicMs - since : undefined;
    return { nodes: [{ ...node, latencyMs }], quorum: 1, hasQuorum: problem === undefined };
  }

  /** The database is that of the application. */
  close(): Promise<void> {
    this.#scheduler.toBackground();
    return Promise.resolve();
  }

  #held(key: string, remainingMs: number): Held {
    const { from, to } = POLL_MS;
    const pollMs = from + this.#scheduler.runtime.random() * (to - from);
    const checkAgainMs = Math.min(remainingMs + EXPIRY_MS, pollMs);
    return { status: 'held', key, remainingMs, checkAgainMs };
  }

  /** Rejects with what the driver throws, for a reply that is none, and when no reply comes in time. */
  async #ask(
    operation: keyof LockDriver,
    key: string,
    { token, ttlMs }: LeaseRequest,
    forMs = ttlMs,
  ): Promise<Reply> {
    const withinMs = Math.min(this.#timeoutMs, ttlMs);
    const limit = new TimeLimit(this.#scheduler, withinMs);
    const timeIsUp = new Promise<never>((_, reject) => {
      limit.onOver = () => {
        reject(new TimeIsUp(`${operation}() did not settle within ${String(withinMs)} ms`));
      };
    });
    try {
      const name = this.#keyPrefix + key;
      const asked =
        operation === 'release'
          ? this.#driver.release(name, token)
          : this.#driver[operation](name, token, forMs);
      const reply = await Promise.race([asked, timeIsUp]);
      refuseMalformed(operation, reply);
      return reply;
    } finally {
      limit.cancel();
    }
  }
}

type Reply = Awaited<ReturnType<LockDriver[keyof LockDriver]>>;

const STATUSES: Readonly<Record<keyof LockDriver, readonly unknown[]>> = {
  acquire: ['acquired', 'held'],
  extend: ['extended', 'lost'],
  release: ['released', 'not-held'],
};

/** A driver is code of another, perhaps in JavaScript. */
function refuseMalformed(operation: keyof LockDriver, reply: unknown): void {
  const { status, remainingMs } = Object(reply) as Readonly<Record<string, unknown>>;
  const problem = `${operation}() must not resolve with`;
  if (!STATUSES[operation].includes(status))
    throw new MalformedReply(`${problem} the status ${describe(status)}`);
  const isDuration = typeof remainingMs === 'number' && remainingMs >= 0;
  if (status === 'held' && !isDuration)
    throw new MalformedReply(
      `${problem} remainingMs ${describe(remainingMs)}: give a number of ms`,
    );
}

async function orUnavailable<Outcome>(
  work: () => Promise<Outcome>,
): Promise<Outcome | Unavailable> {
  try {
    return await work();
  } catch (error) {
    const kind = error instanceof TimeIsUp ? 'timeout' : 'error';
    return {
      status: 'unavailable',
      nodes: [{ node: DRIVER_NODE, kind, message: redact(textOf(error)) }],
      transient: !(error instanceof MalformedReply),
    };
  }
}
