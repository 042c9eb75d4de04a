import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { AsyncLocalStorage } from 'node:async_hooks';
import type { AcquireRequest } from '../../lib/store/lock-store.js';
import { StandingLeases } from '../../lib/store/redis/quorum/standing-leases.js';
import { acquireScript } from '../../lib/store/redis/scripts/acquire.js';
import { extendScript } from '../../lib/store/redis/scripts/extend.js';
import { give, take } from '../../lib/store/redis/scripts/plain.js';
import { raiseFenceScript } from '../../lib/store/redis/scripts/raise-fence.js';
import { releaseScript } from '../../lib/store/redis/scripts/release.js';
import type { FakeRedis } from '../support/fake-redis.js';
import { systemRuntime, type Runtime } from '../../lib/time/runtime.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';
import { LINE, request } from './open-store.js';
import { NODE_TIMEOUT_MS, VirtualQuorum } from './virtual-quorum.js';

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

describe('a lease that one node of three has refused', () => {
  /** As the acquire script refuses. */
  const HELD = [0, 1, 1, 30_000, 'holdfast:other', ''];
  const DOWN = new Error('ERR');
  const TTL_MS = 60_000;

  /** Granted by the others. */
  async function granted(options: Partial<AcquireRequest> = {}) {
    const third = quorum.nodes[2]!;
    third.answerTo(take.sha, () => 0);
    third.answerTo(acquireScript.sha, () => HELD);
    const lease = request('key', { ttlMs: TTL_MS, ...options });
    expect(await quorum.during(quorum.store.acquire(lease), 10)).toMatchObject({
      status: 'granted',
    });
    return lease;
  }

  /** Answers to requests that bring it; the last one is that to all later ones, too. */
  const answers = (...each: readonly (readonly number[] | Error)[]): void => {
    const left = [...each];
    quorum.nodes[2]!.answerTo(extendScript.sha, () => {
      const [answer] = left.length > 1 ? left.splice(0, 1) : left;
      if (answer instanceof Error) return answer;
      return [Math.round(quorum.runtime.now().wallMs * 1_000), answer];
    });
  };

  const tries = (): number => quorum.callsAt(2, extendScript).length;

  it('is brought to that one soon', async () => {
    await granted();
    answers(goneBeside(6), RENEWED);
    await quorum.runtime.advance(SOON_MS);
    expect(quorum.countsOf(extendScript)).toEqual([0, 0, 2]);
  });

  it.each([
    [LINE, [0, 0, 1]],
    [undefined, [0, 0, 0]],
  ])('leaves the line there, if it stood in one: %j', async (line, counts) => {
    await quorum.during(
      quorum.store.listen(() => undefined),
      10,
    );
    await granted({ line });
    await quorum.runtime.advance(10);
    expect(quorum.countsOf(releaseScript)).toEqual(counts);
    if (line !== undefined)
      expect(quorum.callsAt(2, releaseScript)[0]).toContainEqual(
        expect.stringMatching(new RegExp(`^${line.id} 0 .`)),
      );
  });

  it.each<[string, readonly (readonly number[] | Error)[]]>([
    ['as long as a contender holds the key there', [...Array(8).fill(STOLEN), RENEWED]],
    ['also after it could not answer for a moment', [DOWN, DOWN, RENEWED]],
    ['also after it could not answer between two votes', [...Array(4).fill(STOLEN), RENEWED]],
  ])('is brought there %s', async (_what, each) => {
    await granted();
    answers(...each);
    await quorum.runtime.advance(TTL_MS / 2);
    expect(tries()).toBe(each.length);
  });

  it('is brought there three times while it does not answer: later by a renewal', async () => {
    const lease = await granted();
    answers(DOWN);
    await quorum.runtime.advance(15_000);
    expect(tries()).toBe(3);
    answers(goneBeside(6), goneBeside(6), RENEWED);
    await quorum.during(quorum.store.extend([lease]), SOON_MS);
    expect(tries()).toBe(6);
  });

  it('is brought there no more when its time is over', async () => {
    quorum.runtime.random = () => 0;
    await granted({ ttlMs: 4_000 });
    answers(STOLEN);
    await quorum.runtime.advance(3_999);
    // After 50, 550 and 2,550 ms.
    expect(tries()).toBe(3);
    await quorum.runtime.advance(10_000);
    expect(tries()).toBe(3);
  });
});

describe('a lease that another process was granted', () => {
  it('is renewed, and is not brought to a node that lacks it', async () => {
    const lease = request('key');
    answersAt(quorum.nodes[2]!, [goneBeside(7)]);
    expect(await quorum.during(quorum.store.extend([lease]), 10)).toEqual([{ status: 'extended' }]);
    await quorum.runtime.advance(10_000);
    expect(quorum.countsOf(extendScript)).toEqual([1, 1, 1]);
  });

  it('is taken off the node that still has it when the others were given to somebody else', async () => {
    const lease = request('key');
    for (const node of [0, 1]) answersAt(quorum.nodes[node]!, [STOLEN]);
    expect(await quorum.during(quorum.store.extend([lease]), 10)).toEqual([
      { status: 'lost', reason: 'stolen' },
    ]);
    await quorum.runtime.advance(10);
    expect(quorum.countsOf(releaseScript)).toEqual([0, 0, 1]);
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

  it('and is held is looked for again after a majority had lost it: a renewal may have put it back', async () => {
    await begun('held');
    hasAt(HAS, LACKS, LACKS);
    await quorum.runtime.advance(THIRD_MS);
    hasAt(HAS, HAS, LACKS);
    answersAt(quorum.nodes[2]!, [goneBeside(6), RENEWED]);
    await quorum.runtime.advance(THIRD_MS);
    expect(quorum.countsOf(raiseFenceScript)).toEqual([2, 2, 2]);
    expect(quorum.countsOf(extendScript)).toEqual([0, 0, 2]);
  });

  it('and is kept is looked for no more once a majority has lost it', async () => {
    await begun('kept');
    hasAt(HAS, LACKS, LACKS);
    await quorum.runtime.advance(TTL_MS);
    expect(quorum.countsOf(raiseFenceScript)).toEqual([1, 1, 1]);
  });

  it('and was to be kept is brought nowhere where a majority did not have it any more', async () => {
    const lease = await begun('held');
    [HAS, LACKS, LACKS].forEach((answer, index) => {
      quorum.nodes[index]!.answerTo(releaseScript.sha, () => answer);
    });
    await quorum.during(quorum.store.release(lease, 5, TTL_MS), 10);
    await quorum.runtime.advance(2 * TTL_MS);
    expect(quorum.countsOf(extendScript)).toEqual([0, 0, 0]);
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

describe('the look at leases that no renewal follows', () => {
  const TTL_MS = 3_000;
  const DUE_MS = TTL_MS / 3 + 50;

  function looking() {
    const runtime = new VirtualRuntime();
    const checked: string[] = [];
    const leases = new StandingLeases(runtime, NODE_TIMEOUT_MS, ({ lease }) => {
      checked.push(lease.token);
    });
    const add = (token: string, ttlMs: number, standsForMs = ttlMs): void => {
      const now = runtime.now().monotonicMs;
      const times = { untilMs: now + standsForMs, askedAt: now };
      const lease = request('key', { ttlMs, token });
      leases.add({ lease, lastToken: 1, ...times, state: 'held', isBrought: false });
    };
    return { runtime, checked, leases, add };
  }

  it.each([
    ['long', 'short'],
    ['short', 'long'],
  ])(
    'comes when the first of them is due, whichever was granted first: the %s one',
    async (...order) => {
      const { runtime, checked, leases, add } = looking();
      for (const token of order) add(token, token === 'long' ? 10 * TTL_MS : TTL_MS);
      await runtime.advance(DUE_MS);
      expect(checked).toEqual(['short']);
      expect(runtime.timers).toBe(1);
      leases.close();
    },
  );

  it('comes no more when all have ended, and forgets them', async () => {
    const { runtime, checked, leases, add } = looking();
    add('token', TTL_MS);
    await runtime.advance(TTL_MS + 2 * NODE_TIMEOUT_MS + DUE_MS);
    expect(checked).toEqual(['token', 'token']);
    expect(runtime.timers).toBe(0);
    expect(leases.held('token')).toBeUndefined();
  });

  it('comes no more when all were released', async () => {
    const { runtime, leases, add } = looking();
    add('token', TTL_MS);
    expect(leases.end('token')).toMatchObject({ state: 'over' });
    await runtime.advance(DUE_MS);
    expect(runtime.timers).toBe(0);
  });

  it('comes no more after the end of the store, also for a lease that is granted then', async () => {
    const { runtime, checked, leases, add } = looking();
    add('before', TTL_MS);
    leases.close();
    expect(runtime.timers).toBe(0);
    add('after', TTL_MS);
    expect(runtime.timers).toBe(0);
    await runtime.advance(TTL_MS);
    expect(checked).toEqual([]);
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
