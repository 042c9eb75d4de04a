import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Redis } from 'ioredis';
import { LockService, type LockModuleOptions } from 'nestjs-holdfast';
import { setTimeout as sleep } from 'node:timers/promises';
import { newOwnerToken, type HoldMode } from '../../lib/store/owner-token.js';
import { systemRuntime } from '../../lib/time/runtime.js';
import { acquireScript } from '../../lib/store/redis/scripts/acquire.js';
import { extendScript } from '../../lib/store/redis/scripts/extend.js';
import { releaseScript } from '../../lib/store/redis/scripts/release.js';
import type { Script, ScriptCall } from '../../lib/store/redis/scripts/script.js';
import { keyNames } from '../../lib/store/redis/scripts/key-names.js';
import { encoded } from '../support/encoded.js';
import { ChildScript } from '../support/child-script.js';
import { eventually } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';
import { share } from '../support/soak.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { openStore, request, type OpenStore, endHolders, heldMs } from './open-store.js';

const PROCESS = new URL('modes-process.ts', import.meta.url);
const KEEP_MS = 600_000;
/** How long many processes lock. */
const WORK_MS = share(700, 3_000);
const [MAIN, FENCE, QUEUE, HOLDERS] = [
  'lock:key',
  '{lock:key}:fence',
  '{lock:key}:queue',
  '{lock:key}:holders',
];

let server: RedisServer;
let redis: Redis;
let store: OpenStore['store'];
const ends: (() => unknown)[] = [];

beforeAll(async () => {
  Logger.overrideLogger(false);
  server = await RedisServer.start();
  redis = new Redis(server.url);
  ({ store } = await openStore({ redis: server.url }));
});

beforeEach(async () => {
  await redis.flushall();
});

afterEach(async () => {
  await redis.config('SET', 'maxmemory', '0');
  for (const end of ends.splice(0).reverse()) await end();
});

afterAll(async () => {
  redis.disconnect();
  await store.close();
  await server.stop();
});

const namesOf = keyNames('lock:');
const run = ({ lua }: Script, call: ScriptCall): Promise<unknown> => redis.eval(lua, ...call);
const lineMode = 'standalone';
const acquire = (
  token: string,
  ttlMs = 30_000,
  keys = ['key'],
  fenceKeepMs = KEEP_MS,
  member = '',
) =>
  run(
    acquireScript,
    encoded(acquireScript, {
      ...{ names: keys.map(namesOf), token, ttlMs, fenceKeepMs, lineMode, member },
      ...{ ticket: undefined, proposal: 0 },
    }),
  ) as Promise<number[]>;
const extend = (token: string, fencingToken: number, ttlMs = 30_000): Promise<unknown> => {
  const lease = { token, ttlMs, fencingToken, sureUntilUs: 0, expectedFence: undefined };
  return run(
    extendScript,
    encoded(extendScript, {
      names: [namesOf('key')],
      renewals: [lease],
      ...{ fenceKeepMs: KEEP_MS, lineMode },
    }),
  );
};
const release = (token: string, lastToken?: number, keys = ['key']): Promise<unknown> =>
  run(
    releaseScript,
    encoded(releaseScript, {
      ...{ names: keys.map(namesOf), token, lineMode, lastToken },
      member: '',
    }),
  );

const tokens = (count: number, mode: HoldMode = 'shared', places?: number): string[] =>
  Array.from({ length: count }, () => newOwnerToken(systemRuntime, { mode, places }));
const oneToken = (mode: HoldMode = 'shared'): string => newOwnerToken(systemRuntime, { mode });

function serviceAt(options: Partial<LockModuleOptions> = {}): LockService {
  const service = new LockService({ redis: server.url, ...options });
  ends.push(() => service.shutdown(0));
  return service;
}

function child(...args: readonly string[]): ChildScript {
  const script = new ChildScript(PROCESS, args);
  ends.push(() => script.kill());
  return script;
}

/** Of a lease of so many ms, a moment after it was given. */
const expectNear = (leftMs: number, ttlMs: number): void => {
  expect(leftMs).toBeLessThanOrEqual(ttlMs + 10);
  expect(leftMs).toBeGreaterThan(ttlMs - 5_000);
};

describe('the marker at the main key', () => {
  it('stays as long as the longest lease, through acquire, renewal and release', async () => {
    const [one, two] = tokens(2) as [string, string];
    const [, , phase = 0] = await acquire(one, 20_000);
    expect(await redis.get(MAIN)).toBe(`holdfast::shared ${String(phase)}`);
    expectNear(await redis.pttl(MAIN), 20_000);
    await acquire(two, 60_000);
    for (const key of [MAIN, HOLDERS]) expectNear(await redis.pttl(key), 60_000);
    await extend(one, phase, 90_000);
    for (const key of [MAIN, HOLDERS]) expectNear(await redis.pttl(key), 90_000);
    await release(one, phase);
    for (const key of [MAIN, HOLDERS]) expectNear(await redis.pttl(key), 60_000);
    expect(await redis.get(MAIN)).toBe(`holdfast::shared ${String(phase)}`);
    await release(two, phase);
    expect(await redis.exists(MAIN, HOLDERS)).toBe(0);
  });

  it('names the token of who was first, also when somebody joins who takes another key', async () => {
    const [one, two, three] = tokens(3) as [string, string, string];
    const [, , phase] = await acquire(one);
    const [, , larger] = await acquire(two, 60_000, ['key', 'b']);
    expect(larger).toBeGreaterThan(phase!);
    expect(await acquire(three)).toMatchObject({ 0: 1, 2: phase });
  });

  it('keeps plain SET NX out, and as it was deleted the next renewal puts it back; nobody of ours gets in', async () => {
    const [reader, other] = tokens(2) as [string, string];
    const [, , phase = 0] = await acquire(reader);
    expect(await redis.set(MAIN, 'foreign', 'PX', 1_000, 'NX')).toBeNull();
    await redis.del(MAIN);
    expect(await acquire(oneToken('exclusive'))).toMatchObject({ 0: 0 });
    expect(await acquire(oneToken('limit:2'))).toMatchObject({ 0: 0 });
    expect(await heldMs(store, 'key')).toBeGreaterThan(0);
    expect(await extend(reader, phase + 1)).toMatchObject({ 1: [1] });
    expect(await redis.get(MAIN)).toBe(`holdfast::shared ${phase + 1}`);
    expect(await extend(reader, phase)).toMatchObject({ 1: [1] });
    expect(await extend(reader, phase + 1)).toMatchObject({ 1: [1] });
    expect(await redis.get(MAIN)).toBe(`holdfast::shared ${phase}`);
    expect(await acquire(other)).toMatchObject({ 0: 1 });
  });

  it('whose place other software has taken leaves the holders nothing: they are stolen from, and leave its lock alone', async () => {
    const [reader, other] = tokens(2) as [string, string];
    const [, , phase = 0] = await acquire(reader);
    await acquire(other);
    await redis.set(MAIN, 'foreign', 'PX', 60_000);
    expect(await extend(reader, phase)).toMatchObject({ 1: [-1] });
    expect(await release(reader, phase)).toBe(0);
    expect(await redis.zrange(HOLDERS, '0', '-1')).toEqual([other]);
    expect(await release(other, phase)).toBe(0);
    expect(await redis.get(MAIN)).toBe('foreign');
    expect(await redis.exists(HOLDERS)).toBe(0);
  });

  it('of another mode is no key to join by renewing', async () => {
    const [reader] = tokens(1) as [string];
    await acquire(oneToken('limit:2'));
    expect(await extend(reader, 1)).toMatchObject({ 1: [-1] });
  });
});

describe('the holder set', () => {
  it('counts by the time of the server: who is over is dropped, and a place is free', async () => {
    const [short, long, next] = tokens(3, 'limit:2') as [string, string, string];
    await acquire(short, 5_000);
    await acquire(long);
    expect(await acquire(next)).toMatchObject({ 0: 0 });
    // As if it had been granted 5 s ago.
    await redis.zincrby(HOLDERS, -5_000_000, short);
    expect(await redis.zcard(HOLDERS)).toBe(2);
    expect(await acquire(next)).toMatchObject({ 0: 1 });
    expect((await redis.zrange(HOLDERS, '0', '-1')).sort()).toEqual([long, next].sort());
    expect(await release(short)).toBe(0);
  });

  it('of one key is left by a claim when another of the keys is busy', async () => {
    const [claim] = tokens(1) as [string];
    await acquire(claim, 1_000);
    await acquire(oneToken('exclusive'), 30_000, ['other']);
    expect(await acquire(claim, 30_000, ['key', 'other'])).toMatchObject({ 0: 0, 2: 2 });
    expect(await redis.exists(MAIN, HOLDERS)).toBe(0);
  });

  it('counts a request that was sent twice once', async () => {
    const [one, two, three] = tokens(3, 'limit:2') as [string, string, string];
    const [, , phase] = await acquire(one);
    expect(await acquire(one)).toMatchObject({ 0: 1, 2: phase });
    expect(await acquire(two)).toMatchObject({ 0: 1 });
    expect(await acquire(one)).toMatchObject({ 0: 1, 2: phase });
    expect(await acquire(three)).toMatchObject({ 0: 0 });
    await release(one, phase);
    expect(await acquire(three)).toMatchObject({ 0: 1 });
  });

  it('of a phase that goes on for longer than fences are kept lets others join', async () => {
    const [one, two] = tokens(2) as [string, string];
    const [, , phase] = await acquire(one, 60_000, ['key'], 1);
    await sleep(300);
    expect(await acquire(two, 50, ['key'], 1)).toMatchObject({ 0: 1, 2: phase });
  });

  it('keeps its fence for as long as the longest lease asks for', async () => {
    const [long, short] = tokens(2) as [string, string];
    const [, , phase = 0] = await acquire(long, 900_000);
    await acquire(short, 1_000);
    expectNear(await redis.pttl(FENCE), 900_000 + KEEP_MS);
    await extend(short, phase, 1_000);
    expectNear(await redis.pttl(FENCE), 900_000 + KEEP_MS);
  });

  it('never lowers the fence, whatever order those leave in who also took other keys', async () => {
    const [narrow, wide] = tokens(2) as [string, string];
    const [, , first = 0] = await acquire(narrow);
    const [, , second = 0] = await acquire(wide, 30_000, ['key', 'other']);
    expect(second).toBeGreaterThan(first);
    await release(wide, second, ['key', 'other']);
    await release(narrow, first);
    expect(Number(await redis.get(FENCE))).toBeGreaterThan(second);
  });

  it('gives later phases larger tokens, also after a writer that expired or was ended by force', async () => {
    const steps = [
      async (token: string, used: number) => release(token, used),
      async () => sleep(150),
      async () => endHolders(store, 'key'),
    ];
    // Ahead of the clock, which alone would make them grow.
    let last = (Date.now() + 3_600_000) * 1_000;
    await redis.set(FENCE, last, 'PX', 5_000_000);
    for (const end of steps) {
      for (const mode of ['shared', 'exclusive'] as const) {
        const token = oneToken(mode);
        const [granted, , fencing = 0] = await acquire(token, 100);
        expect(granted).toBe(1);
        expect(fencing).toBeGreaterThan(last);
        last = fencing;
        await end(token, fencing);
      }
    }
  });
});

describe('one grant', () => {
  it('lets in the callers behind that may hold the key together with this one', async () => {
    const ear = new Redis(server.url);
    ends.push(() => {
      ear.disconnect();
    });
    await ear.subscribe('ear');
    const [first, second] = tokens(2) as [string, string];
    const line = [first, second, oneToken('exclusive')].map((token) => `${token} 1000 ear`);
    for (const [place, member] of line.entries()) await redis.zadd(QUEUE, place, member);
    expect(await acquire(first, 30_000, ['key'], KEEP_MS, line[0])).toMatchObject({ 0: 1, 3: 2 });
    expect((await redis.zrange(HOLDERS, '0', '-1')).sort()).toEqual([first, second].sort());
    expect(await redis.zrange(QUEUE, '0', '-1')).toEqual(line.slice(2));
  });
});

describe('one release', () => {
  it.each([
    ['all readers at the head of the line', 'shared', 3, 3],
    ['as many as there are places', 'limit:2', 3, 2],
    ['one writer', 'exclusive', 2, 1],
  ] as const)('lets in %s', async (_, mode, waiting, letIn) => {
    const ear = new Redis(server.url);
    ends.push(() => {
      ear.disconnect();
    });
    await ear.subscribe('ear');
    const writer = oneToken('exclusive');
    const [, , fence = 0] = await acquire(writer);
    const line = [...tokens(waiting, mode), oneToken('exclusive'), oneToken(mode)];
    for (const [place, token] of line.entries())
      await redis.zadd(QUEUE, place, `${token} 1000 ear`);
    await release(writer, fence);
    const inside =
      mode === 'exclusive' ? [await redis.get(MAIN)] : await redis.zrange(HOLDERS, '0', '-1');
    expect(inside.sort()).toEqual(line.slice(0, letIn).sort());
    expect(await redis.zcard(QUEUE)).toBe(line.length - letIn);
  });

  it('reads the places of the holders once, however many it lets in', async () => {
    const ear = new Redis(server.url);
    ends.push(() => {
      ear.disconnect();
    });
    await ear.subscribe('ear');
    const [stays, leaves] = tokens(2, 'limit:20', 2) as [string, string];
    const line = tokens(8, 'limit:20', 2);
    await acquire(stays);
    const [, , fence = 0] = await acquire(leaves);
    for (const [place, token] of line.entries())
      await redis.zadd(QUEUE, place, `${token} 1000 ear`);
    const calls = await server.commandsDuring(() => release(leaves, fence));
    expect(await redis.zcard(QUEUE)).toBe(0);
    expect(calls.get('zrangebyscore')).toBeLessThan(2 * line.length);
  });
});

describe('a server whose memory is full', () => {
  it('refuses those who would join, and still renews and releases', async () => {
    const [one, two] = tokens(2);
    const reader = request('key', { token: one });
    expect((await store.acquire(reader)).status).toBe('granted');
    await redis.config('SET', 'maxmemory', '1');
    const before = await redis.zrange(HOLDERS, '0', '-1', 'WITHSCORES');
    const refused = await store.acquire(request('key', { token: two }));
    expect(refused.status).toBe('unavailable');
    expect(await redis.zrange(HOLDERS, '0', '-1', 'WITHSCORES')).toEqual(before);
    expect(await store.extend([reader])).toEqual([{ status: 'extended' }]);
    await redis.config('SET', 'maxmemory', '1');
    await redis.del(MAIN);
    expect(await store.extend([reader])).toEqual([{ status: 'extended' }]);
    expect(await redis.exists(MAIN)).toBe(1);
    expect(await store.release(reader)).toEqual({ status: 'released' });
    expect(await redis.exists(MAIN, HOLDERS)).toBe(0);
  });

  it.each(['exclusive', 'shared', 'limit:2'] as const)(
    'keeps the key taken for as long as a release says, and no longer: %s',
    async (mode) => {
      const lease = request('key', { token: oneToken(mode) });
      await store.acquire(lease);
      await redis.config('SET', 'maxmemory', '1');
      expect(await store.release(lease, undefined, 5_000)).toEqual({ status: 'released' });
      const leftMs = await redis.pttl(MAIN);
      expect(leftMs).toBeGreaterThan(0);
      expect(leftMs).toBeLessThanOrEqual(5_010);
    },
  );
});

describe('a process that is killed', () => {
  it('the place of a killed process is free again at the end of its lease', async () => {
    const holder = child('hold', JSON.stringify({ limit: 2, ttl: 1_500 }), server.url);
    await eventually(() => redis.get('child'), { withinMs: 20_000 });
    const locks = serviceAt();
    await locks.acquire('key', { limit: 2 });
    await holder.kill();
    expect(await locks.tryAcquire('key', { limit: 2 })).toBeNull();
    const lock = await locks.acquire('key', { limit: 2, wait: '10s' });
    expect(lock.isHeld).toBe(true);
  }, 60_000);

  it('while it waited to write keeps no reader waiting', async () => {
    const locks = serviceAt();
    await locks.acquire('key', { mode: 'shared', ttl: '2m' });
    const writer = child('wait', '{}', server.url);
    await eventually(() => redis.exists(QUEUE).then((there) => there === 1), { withinMs: 20_000 });
    expect(await locks.tryAcquire('key', { mode: 'shared' })).toBeNull();
    await writer.kill();
    await eventually(() => locks.tryAcquire('key', { mode: 'shared' }));
    expect(await redis.exists(QUEUE)).toBe(0);
  }, 60_000);
});

describe('a stream of readers', () => {
  it('lets a writer in that waits, and goes on after it', async () => {
    const services = [serviceAt(), serviceAt()];
    let isOver = false;
    let reads = 0;
    const read = async (service: LockService): Promise<void> => {
      while (!isOver) {
        const holdMs = 5 + Math.random() * 20;
        await service.run('key', { mode: 'shared', wait: '20s' }, () => sleep(holdMs));
        reads += 1;
      }
    };
    const readers = services.flatMap((service) => Array.from({ length: 10 }, () => read(service)));
    try {
      await eventually(() => reads > 8);
      for (let writes = 0; writes < 5; writes += 1) {
        await serviceAt().run('key', { wait: '10s' }, () => undefined);
        const before = reads;
        await eventually(() => reads > before);
      }
    } finally {
      isOver = true;
    }
    await Promise.all(readers);
  }, 60_000);
});

describe('an outage', () => {
  it('in which the answer was lost leaves nobody in the holder set', async () => {
    const proxy = await TcpProxy.start(server.port);
    ends.push(() => proxy.stop());
    const locks = serviceAt({ redis: `redis://127.0.0.1:${String(proxy.port)}`, nodeTimeout: 300 });
    await (await locks.acquire('key', { mode: 'shared' })).release();
    proxy.pause('to-client');
    await expect(locks.acquire('key', { mode: 'shared', wait: 0 })).rejects.toMatchObject({
      code: 'LOCK_STORE_UNAVAILABLE',
    });
    proxy.resume('to-client');
    await eventually(async () => (await redis.exists(MAIN, HOLDERS)) === 0, { withinMs: 20_000 });
  }, 60_000);

  it('in which a guarded server forgot everything has the readers put back, before anybody else gets in', async () => {
    const own = await RedisServer.start();
    ends.push(() => own.stop());
    const guarded = {
      redis: own.url,
      ttl: '4s',
      restartGuard: { maxTtl: '4s', bootstrap: true },
    } as const;
    const [one, two] = [serviceAt(guarded), serviceAt(guarded)];
    await one.open();
    const held = [
      await one.acquire('key', { mode: 'shared' }),
      await two.acquire('key', { mode: 'shared' }),
    ];
    await own.kill();
    await own.restart();
    await eventually(async () => (await own.command('ZCARD', HOLDERS)) === 2, { withinMs: 15_000 });
    expect(held.map(({ isHeld }) => isHeld)).toEqual([true, true]);
    expect(await own.command('GET', MAIN)).toBe(
      `holdfast::shared ${String(held[0]?.fencingToken)}`,
    );
    expect(await one.tryAcquire('key')).toBeNull();
    for (const lock of held) expect(await lock.release()).toBe(true);
    expect(await own.command('EXISTS', MAIN, HOLDERS)).toBe(0);
  }, 60_000);
});

describe('many processes', () => {
  it('never hold it against its mode', async () => {
    await Promise.all(
      [1, 2, 3, 4].map(() => child('work', JSON.stringify({ ttl: WORK_MS }), server.url).output),
    );
    expect(await redis.lrange('wrong', 0, -1)).toEqual([]);
    const done = await redis.hgetall('done');
    for (const kind of ['shared', 'exclusive', 'limit'])
      expect(Number(done[kind])).toBeGreaterThan(3);
    expect(Number(await redis.hget('most', 'shared'))).toBeGreaterThan(0);
    expect(await redis.exists(MAIN, QUEUE, HOLDERS)).toBe(0);
  }, 90_000);
});
