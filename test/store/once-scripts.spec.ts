import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { keyNames } from '../../lib/store/redis/scripts/key-names.js';
import { beginScript, endScript } from '../../lib/store/redis/scripts/once.js';
import type { ScriptCall } from '../../lib/store/redis/scripts/script.js';
import { encoded } from '../support/encoded.js';
import { ScriptServer } from './script-server.js';

const LIFE_MS = 60_000;
const KEEP_MS = 20_000;

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

const names = [keyNames('lock:')('a')];

const run = (call: ScriptCall): Promise<unknown> => scripts.run(beginScript, call);

const hold = (token: string): Promise<unknown> => redis.set('lock:a', token);

const begin = (token: string, owner: string, attempts = 3): Promise<unknown> =>
  run(encoded(beginScript, { names, token, owner, lifeMs: LIFE_MS, attempts, keepMs: KEEP_MS }));

const end = (
  what: string,
  token: string,
  owner: string,
  attempt = 1,
  text = '',
): Promise<unknown> =>
  run(
    encoded(endScript, {
      names,
      what: what as (typeof ENDS)[number],
      token,
      owner,
      lifeMs: what === 'done' || what === 'final' ? KEEP_MS : LIFE_MS,
      attempt,
      text,
    }),
  );

const stored = async (): Promise<Record<string, string>> => redis.hgetall('{lock:a}:once');

const ttl = async (): Promise<number> => redis.pttl('{lock:a}:once');

const ENDS = ['keep', 'done', 'failed', 'final', 'returned'] as const;

describe('begin', () => {
  it('begins for the holder of the lock only', async () => {
    expect(await begin('token', 'me')).toEqual([0, 0]);
    await hold('other');
    expect(await begin('token', 'me')).toEqual([0, 0]);
    expect(await stored()).toEqual({});
    await hold('token');
    expect(await begin('token', 'me')).toEqual([1, 1]);
    expect(await stored()).toEqual({
      state: 'running',
      attempt: '1',
      owner: 'me',
      end: '',
      text: '',
    });
    expect(await ttl()).toBeGreaterThan(LIFE_MS - 5_000);
    expect(await ttl()).toBeLessThanOrEqual(LIFE_MS);
  });

  it('is asked twice by one owner: the same attempt, also when it is the last', async () => {
    await hold('token');
    await begin('token', 'me', 1);
    expect(await begin('token', 'me', 1)).toEqual([1, 1]);
    expect(await stored()).toMatchObject({ state: 'running', attempt: '1' });
  });

  it.each(['failed', 'returned'])(
    'begins nothing when it comes after its own end (%s), although others of its process hold the lock',
    async (what) => {
      await hold('token');
      await begin('token', 'me');
      await end(what, 'token', 'me');
      const before = await stored();
      expect(await begin('token', 'me')).toEqual([0, Number(before.attempt)]);
      expect(await stored()).toEqual(before);
    },
  );

  it('counts an attempt that runs under another owner as one that failed', async () => {
    await hold('token');
    await begin('token', 'dead');
    await hold('next');
    expect(await begin('next', 'me')).toEqual([1, 2]);
    expect(await stored()).toMatchObject({ state: 'running', attempt: '2', owner: 'me' });
  });

  it('is refused after the last attempt, and that is remembered for so long', async () => {
    await hold('token');
    await begin('token', 'first', 1);
    expect(await begin('token', 'me', 1)).toEqual([3, 1, '']);
    expect(await stored()).toMatchObject({ state: 'exhausted', attempt: '1' });
    expect(await ttl()).toBeLessThanOrEqual(KEEP_MS);
    // For everybody: also for who would have tried more often, and who does not hold the lock.
    expect(await begin('token', 'other', 5)).toEqual([3, 1, '']);
    expect(await begin('stranger', 'other', 5)).toEqual([3, 1, '']);
  });

  it('tells the error of the attempt before, unless that died', async () => {
    await hold('token');
    await begin('token', 'first');
    await end('failed', 'token', 'first', 1, 'no route');
    expect(await begin('token', 'me', 1)).toEqual([3, 1, 'no route']);
    await redis.del('{lock:a}:once');
    await begin('token', 'first');
    await end('failed', 'token', 'first', 1, 'no route');
    await begin('token', 'dead');
    expect(await begin('token', 'me', 2)).toEqual([3, 2, '']);
  });

  it('is told that the work is done, with its value', async () => {
    await hold('token');
    await begin('token', 'first');
    await end('done', 'token', 'first', 1, '{"a":1}');
    expect(await begin('token', 'me')).toEqual([2, 1, '{"a":1}']);
    expect(await begin('stranger', 'other')).toEqual([2, 1, '{"a":1}']);
  });
});

it.each([
  ['a negative number of attempts', { state: 'failed', attempt: '-1', owner: 'me' }],
  ['half an attempt', { state: 'failed', attempt: '1.5', owner: 'me' }],
  ['too many attempts', { state: 'failed', attempt: '9000000000000001', owner: 'me' }],
  ['no number', { state: 'failed', attempt: 'one', owner: 'me' }],
  ['no owner', { state: 'failed', attempt: '1' }],
])('a record with %s is named in the error, and left alone', async (_, record) => {
  await hold('token');
  await redis.hset('{lock:a}:once', record);
  await expect(begin('token', 'me')).rejects.toThrow(
    'ERR the key "{lock:a}:once" does not hold what Holdfast wrote: delete it',
  );
  expect(await stored()).toEqual(record);
});

describe('the end of an attempt', () => {
  it.each([
    ['done', { state: 'done', attempt: '2', end: 'done', text: 'text' }, KEEP_MS],
    ['final', { state: 'exhausted', attempt: '2', end: 'final', text: 'text' }, KEEP_MS],
    ['failed', { state: 'failed', attempt: '2', end: 'failed', text: 'text' }, LIFE_MS],
    ['returned', { state: 'failed', attempt: '1', end: 'returned', text: '' }, LIFE_MS],
  ])(
    '%s is accepted from its owner, without the lock too, and again',
    async (what, expected, life) => {
      await hold('token');
      await begin('token', 'dead');
      await begin('token', 'me');
      await redis.del('lock:a');
      expect(await end(what, 'token', 'me', 2, 'text')).toEqual([1]);
      expect(await stored()).toMatchObject({ owner: 'me', ...expected });
      expect(await ttl()).toBeGreaterThan(life - 5_000);
      expect(await ttl()).toBeLessThanOrEqual(life);
      expect(await end(what, 'token', 'me', 2, 'text')).toEqual([1]);
      expect(await stored()).toMatchObject({ owner: 'me', ...expected });
    },
  );

  it.each(ENDS)('%s changes nothing when another attempt has begun', async (what) => {
    await hold('token');
    await begin('token', 'slow');
    await hold('next');
    await begin('next', 'me');
    const before = await stored();
    expect(await end(what, 'token', 'slow')).toEqual([0]);
    await hold('token'); // a later turn under the same token
    expect(await end(what, 'token', 'slow')).toEqual([0]);
    expect(await stored()).toEqual(before);
  });

  it.each(ENDS)('%s changes nothing when the work is done', async (what) => {
    await hold('token');
    await begin('token', 'me');
    await end('done', 'token', 'me', 1, '1');
    const before = await stored();
    expect(await end(what, 'token', 'slow')).toEqual([0]);
    expect(await end(what, 'token', 'me')).toEqual([Number(what === 'done')]);
    expect(await stored()).toEqual(before);
  });

  it.each(['failed', 'final', 'done', 'keep'])(
    '%s changes nothing after the attempt was given back',
    async (what) => {
      await hold('token');
      await begin('token', 'me');
      await end('returned', 'token', 'me');
      const before = await stored();
      expect(await end(what, 'token', 'me')).toEqual([0]);
      expect(await stored()).toEqual(before);
    },
  );

  it.each(['done', 'final', 'failed', 'keep'])(
    '%s of the holder of the lock is accepted where nothing is known, of nobody else',
    async (what) => {
      expect(await end(what, 'token', 'me', 2)).toEqual([0]);
      expect(await stored()).toEqual({});
      await hold('token');
      expect(await end(what, 'token', 'me', 2)).toEqual([1]);
      expect(await stored()).toMatchObject({ owner: 'me', attempt: '2' });
    },
  );

  it('returned never counts below none', async () => {
    await hold('token');
    await end('returned', 'token', 'me');
    expect(await stored()).toMatchObject({ state: 'failed', attempt: '0' });
  });
});

describe('keep', () => {
  it('raises the number, lowers it never, and remembers it for longer', async () => {
    await hold('token');
    await begin('token', 'me');
    await redis.pexpire('{lock:a}:once', 1_000);
    expect(await end('keep', 'token', 'me', 3)).toEqual([1]);
    expect(await end('keep', 'token', 'me', 2)).toEqual([1]);
    expect(await stored()).toMatchObject({ state: 'running', attempt: '3', owner: 'me' });
    expect(await ttl()).toBeGreaterThan(LIFE_MS - 5_000);
  });
});
