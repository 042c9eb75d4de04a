import { describe, expect, it } from '@jest/globals';
import type { RedisStore } from '../../lib/store/redis/node/redis-store.js';
import { evenNumberProblem } from '../../lib/store/redis/quorum/members.js';
import { redisLockStore } from '../../lib/store/redis/redis-lock-store.js';
import { FakeRedis, LOST } from '../support/fake-redis.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';
import { request } from './open-store.js';

const NODE_TIMEOUT_MS = 1_000;

const runtime = new VirtualRuntime();

function storeAt(redis: FakeRedis): RedisStore {
  return redisLockStore({
    redis: ['redis://fake'],
    keyPrefix: 'lock:',
    nodeTimeoutMs: NODE_TIMEOUT_MS,
    fenceKeepMs: 600_000,
    warn: () => undefined,
    runtime,
    sourceOf: () => redis,
  }) as RedisStore;
}

/** What comes of it when so much time has passed. */
async function during<T>(outcome: Promise<T>, ms: number): Promise<T> {
  await runtime.advance(ms);
  return outcome;
}

/** One that says that it is of this kind. */
class KindOfRedis extends FakeRedis {
  readonly #kind: 'single' | 'cluster';

  constructor(kind: 'single' | 'cluster') {
    super(runtime);
    this.#kind = kind;
  }

  override connect(...args: Parameters<FakeRedis['connect']>): ReturnType<FakeRedis['connect']> {
    return Object.assign(super.connect(...args), { kind: this.#kind });
  }
}

describe('the clock of a server', () => {
  it.each([
    ['single', 0],
    ['cluster', undefined],
  ] as const)('is known of one server, and of no Cluster, which has many: %s', async (kind, ms) => {
    const store = storeAt(new KindOfRedis(kind));
    await during(store.open(), 100);
    await during(store.acquire(request('key')), 100);
    expect(store.clockOffsetMs).toBe(ms);
    await during(store.close(), 2_000);
  });
});

describe('a server that is connected', () => {
  it('and does not answer whether its database may be used is a timeout', async () => {
    const redis = Object.assign(new FakeRedis(runtime), { database: 3 });
    redis.answerTo('select', () => LOST);
    const store = storeAt(redis);
    await during(store.open(), 2 * NODE_TIMEOUT_MS);
    expect(await during(store.acquire(request('key')), 2 * NODE_TIMEOUT_MS)).toMatchObject({
      status: 'unavailable',
      nodes: [{ kind: 'timeout', message: `no answer within ${String(NODE_TIMEOUT_MS)} ms` }],
    });
    await during(store.close(), 2_000);
  });

  it('is not listened to after the store was closed', async () => {
    const redis = new FakeRedis(runtime);
    const store = storeAt(redis);
    await during(store.open(), 100);
    await during(store.close(), 2_000);
    expect(
      await during(
        store.listen(() => undefined),
        100,
      ),
    ).toBe('polling');
    expect(redis.subscribers.size).toBe(0);
  });
});

describe('the number of servers', () => {
  it.each([
    [1, undefined],
    [2, 'the loss of either ends all locks'],
    [3, undefined],
    [4, 'lists 4 nodes: they survive the loss of 1, as 3 would. Take an odd number.'],
    [6, 'lists 6 nodes: they survive the loss of 2, as 5 would. Take an odd number.'],
  ])('is commented on where it is even: %j', (count, expected) => {
    const problem = evenNumberProblem(count);
    if (expected === undefined) expect(problem).toBeUndefined();
    else expect(problem).toContain(expected);
  });
});
