import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { quarantineScript } from '../../lib/store/redis/scripts/quarantine.js';
import { encoded } from '../support/encoded.js';
import { ScriptServer } from './script-server.js';

const EPOCH = 'lock:{epoch}';
const MAX_TTL_MS = 60_000;

/** Less than this passes between two commands. */
const SOON_MS = 20_000;

let scripts: ScriptServer;
let redis: Redis;
let run: string;

beforeAll(async () => {
  scripts = await ScriptServer.start();
  ({ redis } = scripts);
  run = /run_id:(\w+)/.exec(await redis.info('server'))?.[1] ?? '';
});

beforeEach(async () => {
  await redis.flushall();
});

afterAll(async () => {
  await scripts.stop();
});

const look = async ({ isNew = false, maxTtlMs = MAX_TTL_MS } = {}): Promise<number> =>
  Number(
    await scripts.run(
      quarantineScript,
      encoded(quarantineScript, { isNew, maxTtlMs, epoch: EPOCH }),
    ),
  );

/** What stands beside the run. */
async function overUs(): Promise<number> {
  const [stored, over] = (await redis.get(EPOCH))?.split(' ') ?? [];
  expect(stored).toBe(run);
  return Number(over);
}

/** A look that begins a quarantine of `maxTtlMs`. */
async function expectBegun(maxTtlMs = MAX_TTL_MS): Promise<void> {
  const before = await scripts.nowUs();
  expect(await look({ maxTtlMs })).toBe(maxTtlMs);
  const over = await overUs();
  expect(over).toBeGreaterThanOrEqual(before + maxTtlMs * 1_000);
  expect(over).toBeLessThanOrEqual((await scripts.nowUs()) + maxTtlMs * 1_000);
}

describe('a look at the guard of a server', () => {
  it.each<[string, () => Promise<unknown>]>([
    ['has no epoch key', () => redis.del(EPOCH)],
    ['has that of another run', () => redis.set(EPOCH, `${'a'.repeat(40)} 0`)],
    ['has another text in it', () => redis.set(EPOCH, 'no epoch')],
    [
      'is in quarantine for longer than any lease lasts: its clock was wrong',
      async () => redis.set(EPOCH, `${run} ${(await scripts.nowUs()) + 3 * MAX_TTL_MS * 1_000}`),
    ],
  ])('begins a quarantine if the server %s', async (_, prepare) => {
    await prepare();
    await expectBegun();
  });

  it('counts the quarantine from the first look', async () => {
    await expectBegun();
    const stored = await redis.get(EPOCH);
    const left = await look();
    expect(left).toBeLessThanOrEqual(MAX_TTL_MS);
    expect(left).toBeGreaterThan(MAX_TTL_MS - SOON_MS);
    expect(await redis.get(EPOCH)).toBe(stored);
  });

  it('rounds what is left up', async () => {
    const over = (await scripts.nowUs()) + 30_000_000;
    await redis.set(EPOCH, `${run} ${over}`);
    const call = encoded(quarantineScript, { isNew: false, maxTtlMs: MAX_TTL_MS, epoch: EPOCH });
    for (let times = 0; times < 20; times += 1) {
      const replies = await redis
        .multi()
        .eval(quarantineScript.lua, ...call)
        .time()
        .exec();
      const [[, left], [, after]] = replies as [[null, number], [null, [string, string]]];
      const [seconds, micros] = after.map(Number) as [number, number];
      expect(left * 1_000).toBeGreaterThanOrEqual(over - seconds * 1_000_000 - micros);
    }
  });

  it('ends a quarantine once and for all, and writes nothing more', async () => {
    await redis.set(EPOCH, `${run} ${(await scripts.nowUs()) - 1}`);
    expect(await look()).toBe(0);
    expect(await redis.get(EPOCH)).toBe(`${run} 0`);
    await redis.config('RESETSTAT');
    expect(await look()).toBe(0);
    expect(await redis.info('commandstats')).not.toContain('cmdstat_set:');
  });

  it('begins none for a new server without an epoch key, and goes on with one that has begun', async () => {
    expect(await look({ isNew: true })).toBe(0);
    expect(await redis.get(EPOCH)).toBe(`${run} 0`);
    expect(await look()).toBe(0);
    await redis.set(EPOCH, `${'a'.repeat(40)} 0`);
    expect(await look({ isNew: true })).toBe(MAX_TTL_MS);
  });
});
