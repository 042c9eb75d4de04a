import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { AsyncLocalStorage } from 'node:async_hooks';
import { StandingLeases } from '../../lib/store/redis/quorum/standing-leases.js';
import { extendScript } from '../../lib/store/redis/scripts/extend.js';
import { give } from '../../lib/store/redis/scripts/plain.js';
import { raiseFenceScript } from '../../lib/store/redis/scripts/raise-fence.js';
import { releaseScript } from '../../lib/store/redis/scripts/release.js';
import type { FakeRedis } from '../support/fake-redis.js';
import { systemRuntime, type Runtime } from '../../lib/time/runtime.js';
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

describe('a lease that no renewal follows', () => {
  const TTL_MS = 30_000;
  /** After so long the nodes are asked for it, and a moment later it is where it was missing. */
  const THIRD_MS = TTL_MS / 3 + 1_000;

  /** It is held, or its keys are kept by its release. */
  const begun = async (state: string, lease = request('key', { ttlMs: TTL_MS })) => {
    await quorum.during(quorum.store.acquire(lease), 10);
    if (state === 'kept') await quorum.during(quorum.store.release(lease, 5, TTL_MS), 10);
    return lease;
  };

  const [HAS, LACKS] = [1, 0];
  const hasAt = (...answers: readonly (number | Error)[]): void => {
    answers.forEach((answer, index) => {
      quorum.nodes[index]!.answerTo(raiseFenceScript.sha, () => answer);
    });
  };

  describe.each(['held', 'kept'])('and is %s', (state) => {
    it('is put back where it is missing, with what is left of it', async () => {
      await begun(state);
      hasAt(HAS, LACKS, HAS);
      answersAt(quorum.nodes[1]!, [goneBeside(6), RENEWED]);
      await quorum.runtime.advance(THIRD_MS);
      expect(quorum.countsOf(raiseFenceScript)).toEqual([1, 1, 1]);
      expect(quorum.countsOf(extendScript)).toEqual([0, 2, 0]);
      const [first, second] = quorum.callsAt(1, extendScript);
      // The server's time until which it may stay.
      const untilMs = Number(second!.at(-2)) / 1_000 - (quorum.runtime.now().wallMs - THIRD_MS);
      expect(untilMs).toBeGreaterThan(TTL_MS - 100);
      expect(untilMs).toBeLessThanOrEqual(TTL_MS);
      expect([first!.at(-1), second!.at(-1)]).toEqual(['', 6]);
    });

    it('is looked for again and again, until it ends', async () => {
      await begun(state);
      await quorum.runtime.advance(100_000);
      expect(quorum.countsOf(raiseFenceScript)).toEqual([2, 2, 2]);
      expect(quorum.countsOf(extendScript)).toEqual([0, 0, 0]);
    });

    it.each([
      ['a majority has lost it', LACKS],
      ['a majority does not tell', new Error('ERR')],
    ])('is brought nowhere when %s', async (_what, answer) => {
      await begun(state);
      hasAt(HAS, answer, answer);
      await quorum.runtime.advance(TTL_MS);
      expect(quorum.countsOf(extendScript)).toEqual([0, 0, 0]);
    });

    it('is looked for no more after its release', async () => {
      const lease = await begun(state);
      await quorum.during(quorum.store.release(lease), 10);
      await quorum.runtime.advance(TTL_MS);
      expect(quorum.countsOf(raiseFenceScript)).toEqual([0, 0, 0]);
    });

    it('is brought nowhere when it was released since the nodes were asked', async () => {
      const lease = await begun(state);
      hasAt(HAS, LACKS, HAS);
      await quorum.runtime.advance(TTL_MS / 3 + 60);
      expect(quorum.countsOf(raiseFenceScript)).toEqual([1, 1, 1]);
      await quorum.during(quorum.store.release({ ...lease, isPlain: true }), 10);
      await quorum.runtime.advance(TTL_MS);
      expect(quorum.countsOf(extendScript)).toEqual([0, 0, 0]);
    });
  });

  it('is looked for when its renewals have stopped, and not before', async () => {
    const lease = await begun('held');
    for (let renewals = 0; renewals < 5; renewals += 1) {
      await quorum.runtime.advance(TTL_MS / 3 - 10);
      await quorum.during(quorum.store.extend([lease]), 10);
    }
    expect(quorum.countsOf(raiseFenceScript)).toEqual([0, 0, 0]);
    await quorum.runtime.advance(100_000);
    expect(quorum.countsOf(raiseFenceScript)).toEqual([2, 2, 2]);
  });

  it('and is kept is looked for no more once a majority has lost it', async () => {
    await begun('kept');
    hasAt(HAS, LACKS, LACKS);
    await quorum.runtime.advance(TTL_MS);
    expect(quorum.countsOf(raiseFenceScript)).toEqual([1, 1, 1]);
  });

  it('and is kept is not prolonged by a renewal that a node answers after the release', async () => {
    const lease = request('key', { ttlMs: TTL_MS });
    await quorum.during(quorum.store.acquire(lease), 10);
    quorum.nodes[2]!.delayMs = 500;
    await quorum.during(quorum.store.extend([{ ...lease, ttlMs: 10 * TTL_MS }]), 10);
    await quorum.during(quorum.store.release(lease, 5, TTL_MS), 10);
    quorum.nodes[2]!.delayMs = 0;
    await quorum.runtime.advance(TTL_MS);
    expect(quorum.countsOf(raiseFenceScript)).toEqual([2, 2, 2]);
    await quorum.runtime.advance(10 * TTL_MS);
    expect(quorum.countsOf(raiseFenceScript)).toEqual([2, 2, 2]);
  });
});

describe('the timer for leases that no renewal follows', () => {
  it('keeps no process running, and belongs to no call', async () => {
    const wheres: unknown[] = [];
    const runtime: Runtime = {
      ...systemRuntime,
      setTimer: (callback, delayMs, where) => {
        wheres.push(where);
        return systemRuntime.setTimer(callback, delayMs, where);
      },
    };
    const call = new AsyncLocalStorage<string>();
    const checkedIn = new Promise((resolve) => {
      const standing = new StandingLeases(runtime, 0, () => {
        standing.close();
        resolve(call.getStore());
      });
      const lease = request('key', { ttlMs: 200 });
      const now = runtime.now().monotonicMs;
      const times = { untilMs: now + 10_000, askedAt: now };
      call.run('a call', () => {
        standing.add({ lease, lastToken: 1, ...times, state: 'held', isBrought: false });
      });
    });
    expect(await checkedIn).toBeUndefined();
    expect(wheres).toContain('background');
    expect(wheres).not.toContain(undefined);
  });
});
