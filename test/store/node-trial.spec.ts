import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import calculateSlot from 'cluster-key-slot';
import type { Master, RedisClient } from '../../lib/store/redis/client/redis-client.js';
import { RedisStore } from '../../lib/store/redis/node/redis-store.js';
import { NodeTrial } from '../../lib/store/redis/node/trial.js';
import { acquireScript } from '../../lib/store/redis/scripts/acquire.js';
import { releaseScript } from '../../lib/store/redis/scripts/release.js';
import { FakeRedis } from '../support/fake-redis.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

const HALF = 8_192;

let runtime: VirtualRuntime;
let redis: FakeRedis;
let store: RedisStore;

/** The masters that are connected, and who has a slot. */
let masters: readonly string[];
let ownerOf: (slot: number) => string | undefined;

beforeEach(() => {
  masters = ['a:1', 'b:2'];
  ownerOf = (slot) => (slot < HALF ? 'a:1' : 'b:2');
  runtime = new VirtualRuntime();
  redis = new FakeRedis(runtime);
});

afterEach(async () => {
  const closing = store.close();
  await runtime.advance(2_000);
  await closing;
});

/** Of a Cluster with those masters. */
function trialAt(keyPrefix = 'lock:'): NodeTrial {
  const source = Object.assign(redis, { isCluster: true });
  const connect = redis.connect.bind(redis);
  redis.connect = (events): RedisClient =>
    Object.assign(connect(events), {
      kind: 'cluster' as const,
      masters: () => masters.map((address) => ({ address }) as Master),
      ownerOf: (slot: number) => ownerOf(slot),
    });
  const warn = (): void => undefined;
  const options = { keyPrefix, nodeTimeoutMs: 1_000, fenceKeepMs: 600_000, warn };
  store = new RedisStore(source, options, runtime);
  return new NodeTrial(store);
}

async function during<T>(outcome: Promise<T>): Promise<T> {
  await runtime.advance(10);
  return outcome;
}

/** The slots in which locks were tried. */
const slotsTried = (): readonly number[] =>
  redis.received
    .filter(([, script]) => script === acquireScript.sha)
    .map(([, , , main]) => calculateSlot(String(main)));

/** Fails in the second half of the slots. */
const failsInTheSecondHalf = (): void => {
  const known = redis.answer;
  redis.answer = (name, args) =>
    args[0] === acquireScript.sha && calculateSlot(String(args[2])) >= HALF
      ? new Error('ERR broken')
      : known(name, args);
};

describe('the places where a Cluster may grant locks', () => {
  it('are its masters, connected or not, with or without slots', () => {
    masters = ['a:1', 'empty:3'];
    ownerOf = (slot) => (slot === 0 ? undefined : slot < HALF ? 'a:1' : 'b:2');
    const places = trialAt().places();
    expect(
      places.map(({ name, reachable, serves }) => [
        name,
        (reachable as Master | undefined)?.address,
        serves && [0, 1, HALF].map(serves),
      ]),
    ).toEqual([
      ['a:1', 'a:1', [false, true, false]],
      ['empty:3', 'empty:3', undefined],
      ['b:2', undefined, [false, false, true]],
    ]);
  });
});

describe('a trial', () => {
  it('is made at each master, and tells which of them failed', async () => {
    const trial = trialAt();
    failsInTheSecondHalf();
    expect(await during(trial.tryAll())).toMatchObject({
      nodes: [{ message: 'b:2: ERR broken' }],
    });
  });

  it('takes keys until one lies in a slot of the master', async () => {
    const trial = trialAt();
    for (const wanted of [0, HALF, 0, HALF]) {
      redis.received.length = 0;
      const serves = (slot: number): boolean => slot >= wanted && slot < wanted + HALF;
      expect(await during(trial.tryGranting({ serves }))).toBeUndefined();
      expect(slotsTried().map((slot) => serves(slot))).toEqual([true]);
    }
  });

  it.each<[string, () => void, ((slot: number) => boolean) | undefined]>([
    ['that has no slot', () => undefined, undefined],
    ['that has no vote', () => (store.twin = 'two:6379'), () => true],
  ])('is not made at a master %s', async (_, prepare, serves) => {
    const trial = trialAt();
    prepare();
    expect(await during(trial.tryGranting({ serves }))).toBeUndefined();
    expect(slotsTried()).toEqual([]);
  });

  it('is not made where no lock can be: the prefix has them all in another slot', async () => {
    const trial = trialAt('{app}:');
    expect(await during(trial.tryGranting({ serves: () => false }))).toBeUndefined();
    expect(slotsTried()).toEqual([]);
  });

  it('gives back as callers do, with the fencing token that it was granted', async () => {
    const trial = trialAt();
    redis.answerTo(acquireScript.sha, () => [1, 1, 4_711, 0]);
    await during(trial.tryGranting({ serves: () => true }));
    expect(redis.received.find(([, script]) => script === releaseScript.sha)).toContain(4_711);
  });
});
