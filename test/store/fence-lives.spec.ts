import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { newOwnerToken } from '../../lib/store/owner-token.js';
import { acquireScript } from '../../lib/store/redis/scripts/acquire.js';
import { extendScript } from '../../lib/store/redis/scripts/extend.js';
import { keyNames } from '../../lib/store/redis/scripts/key-names.js';
import { raiseFenceScript } from '../../lib/store/redis/scripts/raise-fence.js';
import { releaseScript } from '../../lib/store/redis/scripts/release.js';
import type { LineMode } from '../../lib/store/redis/scripts/script.js';
import { transferScript } from '../../lib/store/redis/scripts/transfer.js';
import { systemRuntime } from '../../lib/time/runtime.js';
import { encoded } from '../support/encoded.js';
import { ScriptServer } from './script-server.js';

const KEEP_MS = 600_000;
const TTL_MS = 30_000;
const [TOKEN, TO] = ['holdfast:mine', 'holdfast:next'];

/** More than passes between two commands. */
const SOON_MS = 20_000;

const keys = keyNames('lock:')('key');
const { main, fence } = keys;
const names = [keys];

let scripts: ScriptServer;
let redis: Redis;

beforeAll(async () => {
  scripts = await ScriptServer.start();
  ({ redis } = scripts);
});

beforeEach(async () => {
  await redis.flushall();
});

afterAll(async () => {
  await scripts.stop();
});

const acquire = (token = TOKEN, proposal = 0): Promise<unknown> =>
  scripts.run(
    acquireScript,
    encoded(acquireScript, {
      ...{ names, token, ttlMs: TTL_MS, fenceKeepMs: KEEP_MS, lineMode: 'standalone' },
      ...{ member: '', ticket: undefined, proposal },
    }),
  );

const extend = (fencingToken: number, expectedFence?: number): Promise<unknown> => {
  const lease = { token: TOKEN, ttlMs: TTL_MS, fencingToken, expectedFence };
  return scripts.run(
    extendScript,
    encoded(extendScript, {
      names,
      renewals: [{ ...lease, sureUntilUs: 9e15 }],
      ...{ fenceKeepMs: KEEP_MS, lineMode: 'quorum' },
    }),
  );
};

const raiseFence = (
  fencingToken: number,
  { token = TOKEN, lineMode }: { readonly token?: string; readonly lineMode?: LineMode } = {},
): Promise<unknown> =>
  scripts.run(
    raiseFenceScript,
    encoded(raiseFenceScript, {
      ...{ names, token, fencingToken, ttlMs: TTL_MS, fenceKeepMs: KEEP_MS, lineMode },
    }),
  );

const transfer = (lastToken: number): Promise<unknown> =>
  scripts.run(
    transferScript,
    encoded(transferScript, {
      ...{ names, token: TOKEN, to: TO, ttlMs: TTL_MS, fenceKeepMs: KEEP_MS, lastToken },
    }),
  );

/** Over several masters, a fence that was lost is written again. */
const release = (lastToken: number): Promise<unknown> =>
  scripts.run(
    releaseScript,
    encoded(releaseScript, {
      ...{ names, token: TOKEN, lastToken, fenceKeepMs: KEEP_MS, lineMode: 'quorum', member: '' },
    }),
  );

const hold = async (last?: number): Promise<void> => {
  await redis.set(main, TOKEN, 'PX', TTL_MS);
  if (last !== undefined) await redis.set(fence, last, 'PX', 1_000_000_000);
};

describe.each([
  ['ahead of the clock lives longer by as much', 100_000, 100_000],
  ['behind the clock lives as long as usual', -100_000, 0],
])('a fence %s', (_, aheadMs, moreMs) => {
  const above = 5;

  it.each<[string, (token: number) => Promise<void>, number]>([
    [
      'a renewal finds',
      async (token) => {
        await hold(token);
        await extend(above);
      },
      TTL_MS,
    ],
    [
      'a renewal raises, because turns were taken',
      async (token) => {
        await hold(above);
        await extend(token);
        expect(await redis.get(fence)).toBe(String(token));
      },
      TTL_MS,
    ],
    [
      'a renewal raises to put the key back',
      async (token) => {
        await redis.set(fence, above);
        await extend(token, above);
        expect(await redis.mget(main, fence)).toEqual([TOKEN, String(token)]);
      },
      TTL_MS,
    ],
    [
      'a renewal finds and puts the key back beside',
      async (token) => {
        await redis.set(fence, token);
        await extend(above, token);
        expect(await redis.mget(main, fence)).toEqual([TOKEN, String(token)]);
      },
      TTL_MS,
    ],
    [
      'is raised for several servers',
      async (token) => {
        await hold(above);
        expect(await raiseFence(token)).toBe(1);
        expect(await redis.get(fence)).toBe(String(token));
      },
      TTL_MS,
    ],
    [
      'a transfer finds',
      async (token) => {
        await hold(token);
        expect(await transfer(above)).toEqual([1]);
        expect(await redis.mget(main, fence)).toEqual([TO, String(token)]);
      },
      TTL_MS,
    ],
    [
      'a transfer raises',
      async (token) => {
        await hold(above);
        expect(await transfer(token)).toEqual([1]);
        expect(await redis.mget(main, fence)).toEqual([TO, String(token)]);
      },
      TTL_MS,
    ],
    [
      'a release writes anew',
      async (token) => {
        expect(await release(token)).toBe(0);
        expect(await redis.get(fence)).toBe(String(token + 1));
      },
      0,
    ],
  ])('that %s', async (_what, act, ttlMs) => {
    await act((await scripts.nowUs()) + aheadMs * 1_000);
    const leftMs = await redis.pttl(fence);
    const longest = ttlMs + KEEP_MS + moreMs;
    expect(leftMs).toBeLessThanOrEqual(longest + 1);
    expect(leftMs).toBeGreaterThan(longest - SOON_MS);
  });
});

it('a fence that a grant finds ahead of the clock lives longer by as much', async () => {
  await redis.set(fence, (await scripts.nowUs()) + 100_000_000);
  await acquire();
  const leftMs = await redis.pttl(fence);
  expect(leftMs).toBeLessThanOrEqual(TTL_MS + KEEP_MS + 100_000 + 1);
  expect(leftMs).toBeGreaterThan(TTL_MS + KEEP_MS + 100_000 - SOON_MS);
});

it.each([
  ['is the proposed token, if that is ahead of the clock', 500_000, true],
  ['is the clock, if the proposed one is too far ahead of it', 60_000_000, false],
])('the fence of a grant %s', async (_, aheadUs, isTaken) => {
  const proposal = (await scripts.nowUs()) + aheadUs;
  await acquire(TOKEN, proposal);
  expect((await redis.get(fence)) === String(proposal)).toBe(isTaken);
});

describe('a fence that is raised for several servers', () => {
  it('is left alone if it is higher', async () => {
    await hold(9);
    expect(await raiseFence(8)).toBe(1);
    expect(await redis.get(fence)).toBe('9');
    expect(await raiseFence(9)).toBe(1);
  });

  it('is not written if it is as high: that of a standing lease is only looked at', async () => {
    await hold(8);
    const lifeMs = await redis.pttl(fence);
    await redis.config('SET', 'maxmemory', '1');
    try {
      expect(await raiseFence(8)).toBe(1);
    } finally {
      await redis.config('SET', 'maxmemory', '0');
    }
    expect(await redis.pttl(fence)).toBeGreaterThan(lifeMs - SOON_MS);
  });

  it.each([8, 9])('on a Cluster lives for the whole TTL, as high as %i', async (last) => {
    await redis.set(main, TOKEN, 'PX', 2_000);
    await redis.set(fence, last, 'PX', 2_000 + KEEP_MS);
    expect(await raiseFence(8, { lineMode: 'cluster' })).toBe(1);
    expect(await redis.get(fence)).toBe(String(last));
    expect(await redis.pttl(fence)).toBeGreaterThan(TTL_MS + KEEP_MS - SOON_MS);
  });

  it('is named in the error if it is damaged', async () => {
    await hold();
    await redis.set(fence, 'damaged');
    await expect(raiseFence(8)).rejects.toThrow(`"${fence}" does not hold a fencing token`);
    await expect(transfer(8)).rejects.toThrow(`"${fence}" does not hold a fencing token`);
  });

  it.each(['exclusive', 'shared'] as const)(
    'on a Cluster, where the keys were leased briefly, leases them for the TTL: %s',
    async (mode) => {
      const token = newOwnerToken(systemRuntime, { mode });
      await acquire(token);
      const [value, { holders }] = [await redis.get(main), keys];
      for (const key of [main, holders]) await redis.pexpire(key, 2_000);
      await raiseFence(8, { token });
      expect(await redis.pttl(main)).toBeLessThanOrEqual(2_000);
      await raiseFence(8, { token, lineMode: 'cluster' });
      expect(await redis.get(main)).toBe(value);
      for (const key of mode === 'shared' ? [main, holders] : [main]) {
        const leftMs = await redis.pttl(key);
        expect(leftMs).toBeLessThanOrEqual(TTL_MS + 1);
        expect(leftMs).toBeGreaterThan(TTL_MS - SOON_MS);
      }
    },
  );
});
