import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { LockStore } from '../../lib/store/lock-store.js';
import { redisLockStore } from '../../lib/store/redis/redis-lock-store.js';
import { acquireScript } from '../../lib/store/redis/scripts/acquire.js';
import { FakeRedis } from '../support/fake-redis.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';
import { request } from './open-store.js';

let runtime: VirtualRuntime;
let redis: FakeRedis;
let store: LockStore;

beforeEach(async () => {
  runtime = new VirtualRuntime();
  redis = new FakeRedis(runtime);
  redis.answerTo('wait', () => 1);
  store = redisLockStore({
    ...{ redis: ['redis://fake'], keyPrefix: 'lock:', clockDrift: 0.01 },
    ...{ nodeTimeoutMs: 1_000, fenceKeepMs: 600_000 },
    ...{ warn: () => undefined, runtime, sourceOf: () => redis },
    replicas: { ack: 1, timeoutMs: 50 },
  });
  const opening = store.open();
  await runtime.advance(100);
  await opening;
  redis.received.length = 0;
});

afterEach(async () => {
  const closing = store.close();
  await runtime.advance(2_000);
  await closing;
});

/** In the order in which they arrived: a key that was asked for, or WAIT. */
const received = (): readonly string[] =>
  redis.received.flatMap(([name, script, , key]) =>
    name === 'wait' ? ['WAIT'] : script === acquireScript.sha ? [String(key)] : [],
  );

const granted = expect.objectContaining({ status: 'granted' }) as unknown;

async function asked(...keys: readonly string[]): Promise<readonly unknown[]> {
  const asking = Promise.all(keys.map((key) => store.acquire(request(key))));
  await runtime.advance(100);
  return asking;
}

describe('locks that replicas have to confirm', () => {
  it('which are asked for in one moment go out together, under one WAIT', async () => {
    expect(await asked('a', 'b', 'c')).toEqual([granted, granted, granted]);
    expect(received()).toEqual(['lock:a', 'lock:b', 'lock:c', 'WAIT']);
    expect(redis.received.at(-1)).toEqual(['wait', 1, 50]);
  });

  it('which are asked for while a WAIT is on its way go out under the next one', async () => {
    redis.delayMs = 20;
    const first = store.acquire(request('a'));
    await runtime.advance(5);
    const others = [store.acquire(request('b')), store.acquire(request('c'))];
    await runtime.advance(10);
    expect(received()).toEqual(['lock:a', 'WAIT']);
    await runtime.advance(10);
    expect(received()).toEqual(['lock:a', 'WAIT', 'lock:b', 'lock:c', 'WAIT']);
    await runtime.advance(30);
    expect(await Promise.all([first, ...others])).toEqual([granted, granted, granted]);
  });

  it('are asked for again later, on their own', async () => {
    await asked('a');
    await asked('b');
    expect(received()).toEqual(['lock:a', 'WAIT', 'lock:b', 'WAIT']);
  });

  it('are refused when too few have them, each with its reason', async () => {
    redis.answerTo('wait', () => 0);
    expect(await asked('a', 'b')).toMatchObject(
      ['a', 'b'].map(() => ({
        status: 'unavailable',
        nodes: [
          { kind: 'refused', message: expect.stringContaining('acknowledged by 0 of the 1') },
        ],
      })),
    );
  });

  it('are answered each for itself', async () => {
    const known = redis.answer;
    redis.answer = (name, args) =>
      args[0] === acquireScript.sha && args[2] === 'lock:b'
        ? [0, 1, 1, 30_000, 'holdfast:other', '']
        : known(name, args);
    expect(await asked('a', 'b', 'c')).toEqual([
      granted,
      expect.objectContaining({ status: 'held', key: 'b' }),
      granted,
    ]);
  });
});

describe('a release', () => {
  async function released(keepMs?: number, acknowledgedBy = 1): Promise<readonly unknown[]> {
    await asked('a');
    redis.received.length = 0;
    redis.answerTo('wait', () => acknowledgedBy);
    const releasing = store.release(request('a'), 1, keepMs);
    await runtime.advance(100);
    expect(await releasing).toEqual({ status: 'released' });
    return redis.received.map(([name]) => name);
  }

  it('that keeps keys taken waits for replicas: they may know a shorter TTL', async () => {
    expect(await released(30_000)).toEqual(['evalsha', 'wait']);
  });

  it('that too few of them have is one all the same', async () => {
    expect(await released(30_000, 0)).toEqual(['evalsha', 'wait']);
  });

  it('that keeps none waits for none', async () => {
    expect(await released()).toEqual(['evalsha']);
  });
});
