import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { extendScript } from '../../lib/store/redis/scripts/extend.js';
import { give } from '../../lib/store/redis/scripts/plain.js';
import { releaseScript } from '../../lib/store/redis/scripts/release.js';
import type { FakeRedis } from '../support/fake-redis.js';
import { request } from './open-store.js';
import { VirtualQuorum } from './virtual-quorum.js';

/** What a node answers about the key of a renewal. */
const [RENEWED, STOLEN] = [[1], [-1]];
const goneBeside = (fence: number): readonly number[] => [0, fence];

/** Longer than the first pause before a lease is brought to a node. */
const SOON_MS = 200;

/** Longer than the pause after that. */
const LATER_MS = 1_000;

let quorum: VirtualQuorum;

beforeEach(async () => {
  quorum = new VirtualQuorum();
  await quorum.open();
});

afterEach(async () => {
  await quorum.close();
  expect(quorum.runtime.timers).toBe(0);
});

/** Answers renewals at this node, one after the other; the last answer is that to all later ones, too. */
function answersAt(node: FakeRedis, answers: readonly (readonly number[])[]): void {
  const left = [...answers];
  node.answerTo(extendScript.sha, () => {
    const [answer] = left.length > 1 ? left.splice(0, 1) : left;
    return [Math.round(quorum.runtime.now().wallMs * 1_000), answer];
  });
}

describe('a lease that one node of three has lost', () => {
  it('is put back once the others have confirmed it', async () => {
    const { store, nodes } = quorum;
    const lease = request('key');
    await quorum.during(store.acquire(lease), 10);
    answersAt(nodes[2]!, [goneBeside(6), goneBeside(7), RENEWED]);
    expect(await quorum.during(store.extend([lease]), SOON_MS)).toEqual([{ status: 'extended' }]);
    expect(quorum.countsOf(extendScript)).toEqual([1, 1, 3]);
    // Beside the fence that was found.
    expect(quorum.callsAt(2, extendScript).map((call) => call.at(-1))).toEqual(['', '', 7]);
  });

  it.each([
    ['holds the key', STOLEN],
    ['has given it back', goneBeside(8)],
  ])(
    'is brought there later where a contender voted in between and still %s',
    async (_what, answer) => {
      const { store, nodes } = quorum;
      const lease = request('key');
      await quorum.during(store.acquire(lease), 10);
      answersAt(nodes[2]!, [goneBeside(7), goneBeside(7), answer, goneBeside(8), RENEWED]);
      expect(await quorum.during(store.extend([lease]), SOON_MS)).toEqual([{ status: 'extended' }]);
      expect(quorum.countsOf(extendScript)).toEqual([1, 1, 3]);
      await quorum.runtime.advance(LATER_MS);
      expect(quorum.countsOf(extendScript)).toEqual([1, 1, 5]);
    },
  );

  it('is not brought there when it was released meanwhile', async () => {
    const { store, nodes } = quorum;
    const lease = request('key');
    await quorum.during(store.acquire(lease), 10);
    answersAt(nodes[2]!, [goneBeside(7), goneBeside(7), RENEWED]);
    await quorum.during(store.extend([lease]), 10);
    expect(await quorum.during(store.release(lease), 10)).toEqual({ status: 'released' });
    await quorum.runtime.advance(10_000);
    expect(quorum.countsOf(extendScript)).toEqual([1, 1, 1]);
  });

  it('ends by the plain release, if it was never missing anywhere', async () => {
    const { store } = quorum;
    const lease = request('key');
    const granted = await quorum.during(store.acquire(lease), 10);
    expect(granted).toMatchObject({ status: 'granted', isPlain: true });
    await quorum.during(store.extend([lease]), 10);
    expect(await quorum.during(store.release({ ...lease, isPlain: true }), 10)).toEqual({
      status: 'released',
    });
    expect(quorum.countsOf(give)).toEqual([1, 1, 1]);
    expect(quorum.countsOf(releaseScript)).toEqual([0, 0, 0]);
  });

  it('ends by the whole release, if a request that puts it back may be on its way', async () => {
    const { store, nodes } = quorum;
    const lease = request('key');
    await quorum.during(store.acquire(lease), 10);
    answersAt(nodes[2]!, [goneBeside(7), goneBeside(7), RENEWED]);
    await quorum.during(store.extend([lease]), 10);
    expect(await quorum.during(store.release({ ...lease, isPlain: true }), 10)).toEqual({
      status: 'released',
    });
    expect(quorum.countsOf(give)).toEqual([0, 0, 0]);
    expect(quorum.countsOf(releaseScript)).toEqual([1, 1, 1]);
  });
});
