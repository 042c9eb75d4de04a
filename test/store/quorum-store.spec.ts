import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { ObservedStore } from '../../lib/observe/nodes.js';
import type { Server } from '../../lib/store/redis/node/server.js';
import { redisLockStore } from '../../lib/store/redis/redis-lock-store.js';
import type { RestartGuard } from '../../lib/store/redis/scripts/script.js';
import { FakeRedis } from '../support/fake-redis.js';
import { VirtualQuorum } from './virtual-quorum.js';

describe('how many nodes of three are missing for a majority', () => {
  let quorum: VirtualQuorum;

  beforeEach(async () => {
    quorum = new VirtualQuorum();
    await quorum.open();
  });

  afterEach(() => quorum.close());

  const missing = (): number => (quorum.store as unknown as ObservedStore).nodesMissing;

  it.each([
    [0, 0],
    [1, 0],
    [2, 1],
    [3, 2],
  ])('where %d are away: %d', (away, expected) => {
    for (const node of quorum.nodes.slice(0, away)) {
      node.isUp = false;
      node.cut();
    }
    expect(missing()).toBe(expected);
  });

  it('does not count a node that is the same server as another', () => {
    const { nodes } = quorum.store as unknown as { readonly nodes: readonly Server[] };
    nodes[1]!.twin = 'a:6379';
    expect(missing()).toBe(0);
    nodes[2]!.twin = 'a:6379';
    expect(missing()).toBe(1);
  });
});

describe('callers who are the first to ask several masters', () => {
  const GUARD: RestartGuard = { maxTtlMs: 60_000, bootstrap: false };

  it.each<[boolean, string, RestartGuard | undefined]>([
    [true, 'without a restart guard', undefined],
    [false, 'with one: the plain scripts do not read its account', GUARD],
  ])('ask for the plain case first: %j %s', async (isPlainFirst, _what, restartGuard) => {
    const { runtime } = new VirtualQuorum();
    const store = redisLockStore({
      ...{ redis: ['a', 'b', 'c'].map((name) => `redis://${name}`), keyPrefix: 'lock:' },
      ...{ nodeTimeoutMs: 1_000, fenceKeepMs: 600_000, restartGuard, runtime },
      warn: () => undefined,
      sourceOf: (location) => new FakeRedis(runtime, JSON.stringify(location)),
    });
    expect(store.isPlainFirst).toBe(isPlainFirst);
    const closing = store.close();
    await runtime.advance(2_000);
    await closing;
  });
});
