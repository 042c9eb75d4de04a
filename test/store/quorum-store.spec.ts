import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { ObservedStore } from '../../lib/observe/nodes.js';
import type { Server } from '../../lib/store/redis/node/server.js';
import { redisLockStore } from '../../lib/store/redis/redis-lock-store.js';
import { acquireScript } from '../../lib/store/redis/scripts/acquire.js';
import { extendScript } from '../../lib/store/redis/scripts/extend.js';
import { take } from '../../lib/store/redis/scripts/plain.js';
import type { RestartGuard } from '../../lib/store/redis/scripts/script.js';
import { FakeRedis, LOST } from '../support/fake-redis.js';
import { LINE, request } from './open-store.js';
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

/** What a server's clock shows. */
const CLOCK_US = 1_893_456_000_000_000;

describe('over three masters', () => {
  let quorum: VirtualQuorum;

  beforeEach(async () => {
    quorum = new VirtualQuorum();
    await quorum.open();
  });

  afterEach(() => quorum.close());

  it.each([
    ['the plain script', undefined, [1, 0]],
    ['the whole one at once, for it may be refused,', LINE, [0, 1]],
  ])('a caller asks %s with this place in line: %j', async (_, line, counts) => {
    await quorum.during(quorum.store.acquire(request('key', { line })), 10);
    for (const node of quorum.nodes)
      expect([node.countOf(take), node.countOf(acquireScript)]).toEqual(counts);
  });

  it('a lease that a majority has confirmed does not wait for one of which the third master decides', async () => {
    const [first, , third] = quorum.nodes;
    first!.answerTo(extendScript.sha, () => [CLOCK_US, [0, 1], [1]]);
    third!.delayMs = 900;
    const decided: unknown[] = [];
    const leases = [request('gone at the first'), request('everywhere')];
    const extending = quorum.store.extend(leases, (index, { status }) =>
      decided.push([index, status]),
    );
    await quorum.during(extending, 10);
    expect(decided).toEqual([[1, 'extended']]);
    expect(await quorum.during(extending, 900)).toMatchObject([
      { status: 'extended' },
      { status: 'extended' },
    ]);
  });

  it('an operator waits for a majority of them, however much later than the first it answers', async () => {
    const [, second, third] = quorum.nodes;
    second!.delayMs = 900;
    for (const node of quorum.nodes) node.answerTo('eval', () => 1);
    third!.answerTo('eval', () => LOST);
    const forgetting = quorum.store.admin.forgetOnce('key', { state: 'failed', attempts: 1 });
    expect(await quorum.during(forgetting, 899)).toBe('nothing yet');
    expect(await quorum.during(forgetting, 351)).toBe(true);
  });
});
