import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { newOwnerToken, type HoldMode } from '../../../lib/store/owner-token.js';
import type { LockStore } from '../../../lib/store/lock-store.js';
import { keyNames } from '../../../lib/store/redis/scripts/key-names.js';
import { systemRuntime } from '../../../lib/time/runtime.js';
import { openStore, request, endHolders, heldMs } from '../../store/open-store.js';
import { cases } from '../../support/cases.js';
import { RedisServer } from '../../support/redis-server.js';
import { hostileNumber, hostileText } from './hostile-values.js';

let server: RedisServer;
let redis: Redis;
let store: LockStore;

beforeAll(async () => {
  server = await RedisServer.start();
  redis = new Redis(server.url);
  ({ store } = await openStore({ redis: server.url }));
});

afterAll(async () => {
  await store.close();
  redis.disconnect();
  await server.stop();
});

const KEY = 'key';
const names = keyNames('lock:')(KEY);
const NAMES = Object.values(names) as readonly string[];

const token = (mode: HoldMode = 'exclusive') => newOwnerToken(systemRuntime, { mode });

/** Texts that look like what the library writes, and do not. */
const almost = fc.constantFrom(
  'holdfast:',
  'holdfast::',
  'holdfast::shared',
  'holdfast::shared 12',
  'holdfast::shared x',
  'holdfast::limit:0',
  'holdfast::limit:-1 5',
  'holdfast:x:limit:99999999999999999999',
  'holdfast:x:shared',
  `${token()} 1000 holdfast:nobody`,
  `${token('shared')} 99999999999999999999 `,
  `${token()} 0 c\nlock:key`,
  `${token()} 0 c\n{lock:other}:queue`,
);
const text = fc.oneof(almost, hostileText);
const score = fc.oneof(
  hostileNumber.filter((number) => !Number.isNaN(number)).map(String),
  fc.constantFrom('inf', '-inf', '1e300', '9007199254740993'),
);

/** One command of somebody who knows the names of our keys. */
const harm: fc.Arbitrary<readonly (string | Buffer)[]> = fc
  .tuple(
    fc.constantFrom(...NAMES),
    fc.oneof(
      text.map((value) => ['set', value]),
      fc.tuple(score, text).map(([at, member]) => ['zadd', at, member]),
      fc
        .tuple(fc.constantFrom('state', 'attempt', 'owner', 'end', 'text', 'fence', 'sure'), text)
        .map(([field, value]) => ['hset', field, value]),
      text.map((value) => ['rpush', value]),
      text.map((value) => ['sadd', value]),
    ),
  )
  .map(([name, [command, ...rest]]) => [command!, name, ...rest]);

describe('whatever somebody has written where the library keeps its own', () => {
  it('every request is answered in words that say what to do, and after it is deleted the key is free', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(harm, { minLength: 1, maxLength: 5 }),
        fc.constantFrom<HoldMode>('exclusive', 'shared', 'limit:2'),
        fc.boolean(),
        async (harms, mode, holdsBefore) => {
          await redis.flushdb();
          const lease = { ...request(KEY, { token: token(mode) }) };
          const other = request('other');
          await store.acquire(other);
          if (holdsBefore) await store.acquire(lease);
          for (const command of harms)
            await redis.call(...(command as [string])).catch(() => undefined);
          const line = { id: 'line', ttlMs: 1_000 };
          const owner = { owner: 'o', fencingToken: 1, key: KEY, token: lease.token };
          const { once } = store;
          const outcomes = [
            await store.acquire({ ...lease, line }),
            ...(await store.extend([lease])),
            (await store.extend([lease, other]))[1]!,
            await once.begin({ ...owner, attempts: 2, lifeMs: 1_000, keepMs: 1_000 }),
            await once.finish({ ...owner, end: 'done', attempt: 1, lifeMs: 1_000, text: '1' }),
            await store.acquire(request(KEY)),
            await store.release(lease),
          ];
          expect(await endHolders(store, KEY)).toBeGreaterThanOrEqual(0);
          for (const outcome of outcomes) {
            if (!('status' in outcome) || outcome.status !== 'unavailable') continue;
            expect(outcome.nodes[0]?.message).toMatch(/delete it/);
          }
          expect(outcomes[2]).toEqual({ status: 'extended' });
          expect(await store.release({ ...other, keys: [KEY, 'other'] })).toMatchObject({
            status: expect.stringMatching(/not-held|unavailable/),
          });
          expect(await heldMs(store, 'other')).toBe(0);
          await redis.del(...NAMES);
          const after = request(KEY);
          expect(await store.acquire(after)).toMatchObject({ status: 'granted' });
        },
      ),
      { numRuns: cases(60, 1_000) },
    );
  });
});
