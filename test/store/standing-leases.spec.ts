import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { RedisLockStore } from '../../lib/store/redis/quorum/redis-lock-store.js';
import { extendScript } from '../../lib/store/redis/scripts/extend.js';
import { FakeRedis } from '../support/fake-redis.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';
import { request } from './open-store.js';

/** What a node answers about the key of a renewal. */
const [RENEWED, STOLEN] = [[1], [-1]];
const goneBeside = (fence: number): readonly number[] => [0, fence];

/** Longer than the first pause before a lease is brought to a node. */
const SOON_MS = 200;

let runtime: VirtualRuntime;
let nodes: readonly FakeRedis[];
let store: RedisLockStore;

beforeEach(async () => {
  runtime = new VirtualRuntime();
  nodes = ['a:6379', 'b:6379', 'c:6379'].map((name) => new FakeRedis(runtime, name));
  const unused = [...nodes];
  store = new RedisLockStore({
    redis: nodes.map(({ name }) => `redis://${name}`),
    keyPrefix: 'lock:',
    nodeTimeoutMs: 1_000,
    fenceKeepMs: 600_000,
    turns: 1,
    warn: () => undefined,
    runtime,
    sourceOf: () => unused.shift()!,
  });
  await during(store.open(), 100);
});

afterEach(async () => {
  await during(store.close(), 2_000);
  expect(runtime.timers).toBe(0);
});

async function during<T>(outcome: Promise<T>, ms: number): Promise<T> {
  await runtime.advance(ms);
  return outcome;
}

/** Answers renewals at this node, one after the other; the last answer is that to all later ones, too. */
function answersAt(node: FakeRedis, answers: readonly (readonly number[])[]): void {
  const left = [...answers];
  node.answerTo(extendScript.sha, () => {
    const [answer] = left.length > 1 ? left.splice(0, 1) : left;
    return [Math.round(runtime.now().wallMs * 1_000), answer];
  });
}

const renewalsAt = (node: FakeRedis): number => node.countOf(extendScript);

describe('a lease that one node of three has lost', () => {
  it('is put back in a second step, once the others have confirmed it', async () => {
    const lease = request('key');
    await during(store.acquire(lease), 10);
    answersAt(nodes[2]!, [goneBeside(7), RENEWED]);
    expect(await during(store.extend([lease]), SOON_MS)).toEqual([{ status: 'extended' }]);
    expect(nodes.map(renewalsAt)).toEqual([1, 1, 2]);
  });

  it.each([
    ['holds the key', STOLEN],
    ['has given it back', goneBeside(8)],
  ])(
    'is brought there later where a contender voted in between and still %s',
    async (_what, answer) => {
      const lease = request('key');
      await during(store.acquire(lease), 10);
      answersAt(nodes[2]!, [goneBeside(7), answer, goneBeside(8), RENEWED]);
      expect(await during(store.extend([lease]), 10)).toEqual([{ status: 'extended' }]);
      expect(renewalsAt(nodes[2]!)).toBe(2);
      await runtime.advance(SOON_MS);
      expect(nodes.map(renewalsAt)).toEqual([1, 1, 4]);
    },
  );

  it('is not brought there when it was released meanwhile', async () => {
    const lease = request('key');
    await during(store.acquire(lease), 10);
    answersAt(nodes[2]!, [goneBeside(7), STOLEN, goneBeside(8), RENEWED]);
    await during(store.extend([lease]), 10);
    expect(await during(store.release(lease), 10)).toEqual({ status: 'released' });
    await runtime.advance(10_000);
    expect(renewalsAt(nodes[2]!)).toBe(2);
  });
});
