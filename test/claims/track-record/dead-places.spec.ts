import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { LockService } from 'nestjs-holdfast';
import { ChildScript } from '../../support/child-script.js';
import { eventually } from '../../support/eventually.js';
import { watchHandles } from '../../support/no-leaks.js';
import { RedisServer } from '../../support/redis-server.js';

const LIMIT_MS = 120_000;

/** As many dead processes stand before one that lives. */
const DEAD = 1_020;

/** The machine may be late at one of them. */
const KEYS = ['key:1', 'key:2', 'key:3'] as const;

const SOON_MS = 300;
const BLOCKED_MS = 30;

/** A caller stands in line by then, and what a release causes is over. */
const IN_LINE_MS = 200;

const handles = watchHandles();
let server: RedisServer;
let redis: Redis;

beforeAll(async () => {
  Logger.overrideLogger(false);
  server = await RedisServer.start();
  redis = new Redis(server.url);
});

afterAll(async () => {
  redis.disconnect();
  await server.stop();
  await handles.expectNoneOpen();
});

/** How many are in the largest set of any kind that has to do with the key: its line, in whatever form. */
const LARGEST = `
local most = 0
for _, name in ipairs(redis.call('KEYS', '*' .. ARGV[1] .. '*')) do
  local count = ({ zset = 'ZCARD', list = 'LLEN', set = 'SCARD', hash = 'HLEN' })[redis.call('TYPE', name).ok]
  if count then most = math.max(most, redis.call(count, name)) end
end
return most`;

const longestLineOf = async (key: string): Promise<number> =>
  Number(await redis.eval(LARGEST, 0, key));

/** In ms, of the commands since the log was emptied. */
async function slowestMs(): Promise<number> {
  const entries = (await redis.slowlog('GET', '-1')) as [number, number, number, ...unknown[]][];
  return Math.max(0, ...entries.map(([, , us]) => us / 1_000));
}

describe('a line in which more than a thousand processes have died', () => {
  it(
    'HF-52 is passed over by one release: the one that lives behind them has the key at once, and Redis is not blocked',
    async () => {
      const [holder, waiter] = [1, 2].map(
        () => new LockService({ redis: server.url, ttl: 60_000, nodeTimeout: '30s' }),
      ) as [LockService, LockService];
      try {
        await Promise.all([holder.open(), waiter.open()]);
        const held = await Promise.all(KEYS.map((key) => holder.acquire(key)));
        const dying = new ChildScript(new URL('./many-places.ts', import.meta.url), [
          ...[server.url, String(DEAD)],
          ...KEYS,
        ]);
        try {
          expect(await redis.blpop('places', 90)).not.toBeNull();
          for (const key of KEYS) await eventually(async () => (await longestLineOf(key)) >= DEAD);
        } finally {
          await dying.kill();
        }
        // Redis knows that they have died.
        await eventually(
          async () =>
            Number(/^connected_clients:(\d+)/m.exec(await redis.info('clients'))?.[1]) < 50,
        );
        await redis.config('SET', 'slowlog-log-slower-than', '1000');

        const results: { readonly tookMs: number; readonly blockedMs: number }[] = [];
        for (const [index, key] of KEYS.entries()) {
          const calling = waiter.acquire(key, { wait: '20s' });
          await sleep(IN_LINE_MS);
          await redis.slowlog('RESET');
          const since = performance.now();
          await held[index]!.release();
          const lock = await calling;
          const tookMs = performance.now() - since;
          await sleep(IN_LINE_MS);
          results.push({ tookMs, blockedMs: await slowestMs() });
          await lock.release();
        }
        const isWell = results.some(
          ({ tookMs, blockedMs }) => tookMs < SOON_MS && blockedMs < BLOCKED_MS,
        );
        expect(isWell ? [] : results).toEqual([]);
      } finally {
        await Promise.all([holder.shutdown(0), waiter.shutdown(0)]);
      }
    },
    LIMIT_MS,
  );
});
