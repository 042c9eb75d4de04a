import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Redis } from 'ioredis';
import { LockService, LockStoreUnavailableError } from 'nestjs-holdfast';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { acquireScript } from '../../lib/store/redis/scripts/acquire.js';
import { extendScript } from '../../lib/store/redis/scripts/extend.js';
import { raiseFenceScript } from '../../lib/store/redis/scripts/raise-fence.js';
import { releaseScript } from '../../lib/store/redis/scripts/release.js';
import type { Script, ScriptCall } from '../../lib/store/redis/scripts/script.js';
import { keyNames } from '../../lib/store/redis/scripts/key-names.js';
import { encoded } from '../support/encoded.js';
import { newOwnerToken } from '../../lib/store/owner-token.js';
import { systemRuntime } from '../../lib/time/runtime.js';
import { eventually } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';
import { LINE, openStore, request, type OpenStore, endHolders, heldMs } from './open-store.js';

const KEEP_MS = 600_000;

let server: RedisServer;
let redis: Redis;
let store: OpenStore['store'];

beforeAll(async () => {
  Logger.overrideLogger(false);
  server = await RedisServer.start();
  redis = new Redis(server.url);
  ({ store } = await openStore({ redis: server.url }));
});

beforeEach(async () => {
  await redis.flushall();
});

afterAll(async () => {
  redis.disconnect();
  await store.close();
  await server.stop();
});

const namesOf = keyNames('lock:');
const names = (key: string): string[] => {
  const { main, fence, queue, holders } = namesOf(key);
  return [main, fence, queue, holders];
};

const run = ({ lua }: Script, call: ScriptCall): Promise<unknown> => redis.eval(lua, ...call);

/** By a caller who stands in line as `member`, if that is given; a lease has one fencing token. */
const acquireAs = (token: string, keys: string[], member = ''): Promise<unknown> =>
  run(
    acquireScript,
    encoded(acquireScript, {
      names: keys.map(namesOf),
      token,
      ttlMs: 30_000,
      fenceKeepMs: KEEP_MS,
      lineMode: 'standalone',
      member,
      ticket: undefined,
      proposal: 0,
    }),
  );

const acquire = (token: string, ...keys: string[]): Promise<unknown> => acquireAs(token, keys);

const release = (token: string, ...keys: string[]): Promise<unknown> =>
  run(
    releaseScript,
    encoded(releaseScript, {
      names: keys.map(namesOf),
      token,
      lineMode: 'standalone',
      fenceKeepMs: KEEP_MS,
      maxTtlMs: 30_000, // with a guard, a missing fence is written
      member: '',
    }),
  );

const extend = (token: string, key: string, fencingToken: number): Promise<unknown> =>
  run(
    extendScript,
    encoded(extendScript, {
      names: [namesOf(key)],
      renewals: [
        {
          token,
          ttlMs: 30_000,
          fencingToken,
          sureUntilUs: 0,
          expectedFence: undefined,
        },
      ],
      fenceKeepMs: KEEP_MS,
      lineMode: 'standalone',
    }),
  );

/** A renewal over several masters, of a lease whose fencing token is 5. Answers what has become of the key. */
async function putBack(
  key: string,
  { beside, sureForMs = 10_000 }: { readonly beside: number; readonly sureForMs?: number },
): Promise<unknown> {
  const [seconds = 0, micros = 0] = (await redis.time()).map(Number);
  const renewal = { token: 'holdfast:mine', ttlMs: 30_000, fencingToken: 5 };
  const sureUntilUs = seconds * 1e6 + micros + sureForMs * 1_000;
  const call = encoded(extendScript, {
    names: [namesOf(key)],
    renewals: [{ ...renewal, sureUntilUs, expectedFence: beside }],
    fenceKeepMs: KEEP_MS,
    lineMode: 'quorum',
  });
  const [, answer] = (await run(extendScript, call)) as unknown[];
  return answer;
}

const raiseFence = (token: string, keys: string[], fencingToken: number): Promise<unknown> =>
  run(
    raiseFenceScript,
    encoded(raiseFenceScript, {
      names: keys.map(namesOf),
      token,
      fencingToken,
      ttlMs: 30_000,
      fenceKeepMs: KEEP_MS,
      lineMode: 'standalone',
    }),
  );

const [FIRST, SECOND] = ['first 1000 holdfast:first', 'second 1000 holdfast:second'] as const;

const contents = async (): Promise<Record<string, string | null>> => {
  const entries = (await redis.keys('*')).sort().map(async (key) => [key, await redis.get(key)]);
  return Object.fromEntries(await Promise.all(entries)) as Record<string, string | null>;
};

describe('a key that a renewal puts back on one of several masters', () => {
  const [main = '', fence = ''] = names('lost');

  it('is put back beside the fence that was found, and raises it to its own token', async () => {
    await redis.set(fence, 3);
    expect(await putBack('lost', { beside: 3 })).toEqual([1]);
    expect(await redis.mget(main, fence)).toEqual(['holdfast:mine', '5']);
  });

  it('is not put back beside another fence: somebody was granted it since, or it was released', async () => {
    for (const stored of [2, 4]) {
      await redis.set(fence, stored);
      expect(await putBack('lost', { beside: 3 })).toEqual([0, String(stored)]);
      expect(await redis.exists(main)).toBe(0);
    }
  });

  it('is not put back after its deadline, nor over the token of another', async () => {
    await redis.set(fence, 3);
    expect(await putBack('lost', { beside: 3, sureForMs: -1 })).toEqual([0, '3']);
    await redis.set(main, 'holdfast:other');
    expect(await putBack('lost', { beside: 3 })).toEqual([-1]);
    expect(await redis.get(main)).toBe('holdfast:other');
  });
});

describe('a release that keeps the keys', () => {
  const KEPT_MS = 20_000;

  it('makes that their TTL, longer or shorter, as often as it is sent; their fences outlive them', async () => {
    for (const ttlMs of [1_000, 60_000]) {
      const lease = request(`kept-${String(ttlMs)}`, { ttlMs });
      const [main = '', fence = ''] = names(lease.keys[0] ?? '');
      const outcome = await store.acquire(lease);
      const last = outcome.status === 'granted' ? outcome.fencingToken : NaN;
      // As if it had been granted long ago.
      await redis.pexpire(fence, ttlMs);
      for (const time of ['once', 'twice']) {
        expect([time, await store.release(lease, last, KEPT_MS)]).toEqual([
          time,
          { status: 'released' },
        ]);
        expect(await redis.get(main)).toBe(lease.token);
        const leftMs = await redis.pttl(main);
        expect(leftMs).toBeGreaterThan(KEPT_MS / 2);
        expect(leftMs).toBeLessThanOrEqual(KEPT_MS);
        expect(await redis.pttl(fence)).toBeGreaterThanOrEqual(leftMs);
        expect(Number(await redis.get(fence))).toBeGreaterThan(last);
      }
      expect(await store.release(lease, last)).toEqual({ status: 'released' });
      expect(await redis.exists(main)).toBe(0);
    }
  });

  it('leaves keys of others alone', async () => {
    const lease = request('kept');
    await redis.set('lock:kept', 'somebody', 'PX', 1_000);
    expect(await store.release(lease, 1, KEPT_MS)).toEqual({ status: 'not-held' });
    expect(await redis.pttl('lock:kept')).toBeLessThanOrEqual(1_000);
  });
});

describe('a script that is sent twice', () => {
  it('acquires once: the keys hold it as before, with a fencing token that is larger', async () => {
    const [, , first] = (await acquire('mine', 'a', 'b')) as number[];
    const [granted, clock, second, waiting] = (await acquire('mine', 'a', 'b')) as number[];
    expect([granted, clock, waiting]).toEqual([1, expect.any(Number), 0]);
    expect(Number(second)).toBeGreaterThan(Number(first));
    expect(await contents()).toEqual({
      'lock:a': 'mine',
      'lock:b': 'mine',
      '{lock:a}:fence': String(second),
      '{lock:b}:fence': String(second),
    });
  });

  it('grants anew, with a larger token, when only some of the keys were still held', async () => {
    const [, , first] = (await acquire('mine', 'a', 'b')) as number[];
    await redis.del('lock:a');
    const [granted, , second] = (await acquire('mine', 'a', 'b')) as number[];
    expect(granted).toBe(1);
    expect(Number(second)).toBeGreaterThan(Number(first));
  });

  it('extends, raises and releases once', async () => {
    const [, , fence = 0] = (await acquire('mine', 'a')) as number[];
    const { fence: fenceKey } = namesOf('a');
    for (let time = 0; time < 2; time += 1) {
      expect(await extend('mine', 'a', fence)).toEqual([expect.any(Number), [1]]);
      expect(await raiseFence('mine', ['a'], fence)).toBe(1);
      expect(await redis.get(fenceKey)).toBe(String(fence));
    }
    expect(await release('mine', 'a')).toBe(1);
    const raised = await redis.get(fenceKey);
    expect(await release('mine', 'a')).toBe(0);
    expect(await redis.get(fenceKey)).toBe(raised);
  });

  it('stands in line once, at the place it had', async () => {
    await acquire('theirs', 'a');
    const first = await acquireAs('mine', ['a'], FIRST);
    expect(first).toEqual([
      0,
      expect.any(Number),
      1,
      expect.any(Number),
      'theirs',
      expect.any(String),
      expect.any(Number),
      0,
    ]);
    await acquireAs('mine', ['a'], SECOND);
    await acquireAs('mine', ['a'], FIRST);
    const [, , , , , ticket] = first as string[];
    const line = await redis.zrange('{lock:a}:queue', '0', '-1', 'WITHSCORES');
    expect(line).toEqual([FIRST, ticket, SECOND, expect.any(String)]);
  });
});

describe('a script that fails', () => {
  it.each([
    ['the lock itself', 'lock:b', 'WRONGTYPE'],
    ['the fence', '{lock:b}:fence', 'does not hold a fencing token'],
  ])('because %s has the wrong type acquires nothing', async (_what, wrong, problem) => {
    await redis.hset(wrong, { field: 'value' });
    const outcome = await store.acquire(request(['a', 'b', 'c']));
    expect(outcome).toMatchObject({ status: 'unavailable', transient: false });
    expect(JSON.stringify(outcome)).toContain(problem);
    expect(await server.namesInUse()).toEqual([wrong]);
  });

  it.each(['not a number', '-1', '1.5', '9000000000000001', '1e400'])(
    'because the fence is no token acquires nothing: %s',
    async (stored) => {
      await redis.set('{lock:b}:fence', stored);
      expect(await store.acquire(request(['a', 'b']))).toMatchObject({ status: 'unavailable' });
      expect(await server.namesInUse()).toEqual(['{lock:b}:fence']);
    },
  );

  it.each([
    ['the fence has the wrong type', '{lock:a}:fence'],
    ['the queue has the wrong type', '{lock:a}:queue'],
  ])('because %s still renews and releases', async (_what, wrong) => {
    const lease = request(['a', 'b']);
    await store.acquire(lease);
    await redis.del(wrong);
    await redis.hset(wrong, { field: 'value' });
    expect(await store.extend([lease])).toEqual([{ status: 'extended' }]);
    expect(await store.release(lease)).toEqual({ status: 'released' });
    expect(await redis.exists('lock:a', 'lock:b')).toBe(0);
  });

  it('because a fence is no number renews this key and the others of the batch', async () => {
    const [spoilt, other] = [request('a'), request('b')];
    await store.acquire(spoilt);
    await store.acquire(other);
    await redis.set('{lock:a}:fence', 'not a number');
    expect(await store.extend([spoilt, other])).toEqual([
      { status: 'extended' },
      { status: 'extended' },
    ]);
  });

  it('because one key became of another type still renews and releases the others', async () => {
    const [spoilt, other] = [request(['a', 'b']), request('c')];
    await store.acquire(spoilt);
    await store.acquire(other);
    await redis.del('lock:a');
    await redis.hset('lock:a', 'field', 'value');
    expect(await store.extend([spoilt, other])).toEqual([
      expect.objectContaining({ status: 'unavailable' }),
      { status: 'extended' },
    ]);
    expect(await store.release(spoilt)).toEqual({ status: 'not-held' });
    expect(await redis.exists('lock:b')).toBe(0);
    expect(await redis.type('lock:a')).toBe('hash');
  });

  it('at every key renews with the error: the server was made a replica', async () => {
    await acquire('mine', 'a');
    await redis.replicaof('127.0.0.1', '1');
    try {
      await expect(extend('mine', 'a', 1)).rejects.toThrow(/^READONLY/);
    } finally {
      await redis.replicaof('NO', 'ONE');
    }
  });

  it('to put the caller in line says so, by asking it to look again soon', async () => {
    await store.acquire(request('a'));
    const standing = await store.acquire(request('a', { line: LINE }));
    expect(standing).toMatchObject({ status: 'held', key: 'a' });
    expect(standing.status === 'held' && standing.checkAgainMs).toBeGreaterThan(20_000);
    await redis.del('{lock:a}:queue');
    await redis.set('{lock:a}:queue', 'of another type');
    const outcome = await store.acquire(request('a', { line: LINE }));
    expect(outcome.status === 'held' && outcome.checkAgainMs).toBeLessThanOrEqual(1_000);
  });
});

describe('a server whose memory is full', () => {
  afterEach(async () => {
    await redis.config('SET', 'maxmemory', '0');
  });

  it('a server with full memory refuses acquires with an error, and still renews and releases held locks', async () => {
    const lease = request(['a', 'b']);
    await store.acquire(lease);
    await redis.pexpire('lock:a', 1_000);
    await redis.config('SET', 'maxmemory', '1');

    const outcome = await store.acquire(request(['c', 'd']));
    expect(outcome).toMatchObject({ status: 'unavailable' });
    expect(JSON.stringify(outcome)).toContain('OOM');
    expect(await redis.exists(...names('c'), ...names('d'))).toBe(0);

    expect(await store.extend([lease])).toEqual([{ status: 'extended' }]);
    expect(await redis.pttl('lock:a')).toBeGreaterThan(20_000);
    const held = await store.acquire(request('a', { line: LINE }));
    expect(held.status === 'held' && held.checkAgainMs).toBeLessThanOrEqual(1_000);
    expect(await store.release(lease)).toEqual({ status: 'released' });
    expect(await redis.exists('lock:a', 'lock:b')).toBe(0);
    expect(await store.extend([lease])).toEqual([{ status: 'lost', reason: 'released-elsewhere' }]);
  });
});

describe('an answer that no script gives', () => {
  it('is not taken for a yes: +QUEUED, as inside a MULTI', async () => {
    const sockets = new Set<Socket>();
    const fake = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('data', (bytes) => {
        for (const [, name] of bytes.toString().matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n/g)) {
          if (name?.toLowerCase() === 'hello') socket.write("-ERR unknown command 'HELLO'\r\n");
          else if (name?.toLowerCase() === 'info') socket.write('$11\r\nrole:master\r\n');
          else socket.write('+QUEUED\r\n');
        }
      });
    });
    await new Promise<void>((resolve) => fake.listen(0, '127.0.0.1', resolve));
    const { port } = fake.address() as AddressInfo;
    const deceived = (await openStore({ redis: { host: '127.0.0.1', port } })).store;
    const lease = request('a');
    const unavailable = {
      status: 'unavailable',
      nodes: [
        {
          node: `127.0.0.1:${String(port)}`,
          kind: 'error',
          message: expect.stringContaining('QUEUED'),
        },
      ],
      transient: false,
    };
    expect(await deceived.acquire(lease)).toEqual(unavailable);
    expect(await deceived.extend([lease])).toEqual([unavailable]);
    expect(await deceived.release(lease)).toEqual(unavailable);
    const { nodes } = unavailable;
    await expect(heldMs(deceived, 'a')).rejects.toMatchObject({ nodes });
    await deceived.close();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => fake.close(resolve));
  });
});

describe('renewals', () => {
  it('of 1,200 leases go out in scripts of at most 500 keys each', async () => {
    const leases = Array.from({ length: 1_200 }, (_, index) => request(`bulk:${String(index)}`));
    await Promise.all(leases.map((lease) => store.acquire(lease)));
    await store.extend(leases.slice(0, 1)); // the server has the script from here on
    const commands = await server.commandsSentDuring(async () => {
      const outcomes = await store.extend(leases);
      expect(outcomes.every(({ status }) => status === 'extended')).toBe(true);
    });
    const keysPerScript = commands
      .filter(([name, sha]) => name === 'evalsha' && sha === extendScript.sha)
      .map(([, , count]) => Number(count) / 5);
    expect(keysPerScript).toEqual([500, 500, 200]);
  });

  it('answer for each lease, in order, whatever became of the others', async () => {
    const [held, gone, stolen] = [request(['a', 'b']), request(['c', 'd']), request('e')];
    for (const lease of [held, gone, stolen]) await store.acquire(lease);
    await redis.del('lock:d');
    await redis.set('lock:e', 'somebody else');
    expect(await store.extend([gone, held, stolen])).toEqual([
      { status: 'lost', reason: 'released-elsewhere' },
      { status: 'extended' },
      { status: 'lost', reason: 'stolen' },
    ]);
  });
});

describe('a lock of other software', () => {
  it('excludes us and is excluded by us, and is looked at again every second', async () => {
    const service = new LockService({ redis: server.url });
    await redis.set('lock:foreign', 'of redlock', 'PX', 60_000);
    expect(await service.tryAcquire('foreign')).toBeNull();
    const waiting = service.acquire('foreign', { wait: '25s' });
    await eventually(async () => (await redis.exists('{lock:foreign}:queue')) === 1);
    await redis.del('lock:foreign'); // tells nobody
    const lock = await waiting;
    expect(await redis.set('lock:foreign', 'of redlock', 'PX', 1_000, 'NX')).toBeNull();
    await lock.release();
    await service.shutdown();
  });

  it('without TTL is held for ever, and is looked at again every second', async () => {
    await redis.set('lock:foreign', 'somebody');
    const outcome = await store.acquire(request('foreign', { line: LINE }));
    expect(outcome).toMatchObject({
      status: 'held',
      key: 'foreign',
      remainingMs: Infinity,
      checkAgainMs: 1_000,
      ticket: expect.any(Number),
    });
    expect(await heldMs(store, 'foreign')).toBe(Infinity);
    expect(await redis.pttl('{lock:foreign}:queue')).toBeGreaterThan(0);
    expect(await endHolders(store, 'foreign')).toBe(1);
    expect(await heldMs(store, 'foreign')).toBe(0);
  });

  it('may be an empty text, and is ended like any other one', async () => {
    await redis.set('lock:foreign', '');
    expect(await heldMs(store, 'foreign')).toBe(Infinity);
    expect(await endHolders(store, 'foreign')).toBe(1);
    expect(await redis.exists('lock:foreign')).toBe(0);
  });

  it('that looks like a side key disturbs nobody: keys may end like one', async () => {
    const keys = ['order:42', 'order:42:fence', 'order:42:queue'];
    const lease = request(keys);
    expect(await store.acquire(lease)).toMatchObject({ status: 'granted' });
    for (const key of keys) expect(await redis.get(`lock:${key}`)).toBe(lease.token);
    expect(await store.release(lease)).toEqual({ status: 'released' });
  });
});

describe('fencing tokens', () => {
  it.each([
    ['none', undefined, '0'],
    ['the smallest', '0', '0'],
    ['the largest', '9000000000000000', '9000000000000000'],
  ])('are in the reply to the renewal of a free key: %s', async (_, stored, returned) => {
    if (stored !== undefined) await redis.set('{lock:a}:fence', stored);
    expect(await extend('mine', 'a', 1)).toEqual([expect.any(Number), [0, returned]]);
    expect(await acquire('mine', 'a')).toMatchObject({ 0: 1 });
  });

  const tokenOf = async (lease = request('key')): Promise<number> => {
    const outcome = await store.acquire(lease);
    if (outcome.status !== 'granted') throw new Error(JSON.stringify(outcome));
    await store.release(lease);
    return outcome.fencingToken;
  };

  it('are microseconds of the server, written with all their digits', async () => {
    const token = await tokenOf();
    const [seconds, micros] = (await redis.time()) as unknown as [string, string];
    const now = Number(seconds) * 1_000_000 + Number(micros);
    expect(Number.isSafeInteger(token)).toBe(true);
    expect(token).toBeLessThanOrEqual(now);
    expect(token).toBeGreaterThan(now - 60_000_000);
    expect(await redis.get('{lock:key}:fence')).toMatch(/^\d{16}$/);
  });

  it('grow by one where the stored one is ahead of the clock, and are kept for as long as it is', async () => {
    const ahead = (Date.now() + 100_000) * 1_000;
    await redis.set('{lock:key}:fence', String(ahead));
    const lease = request('key');
    const granted = await store.acquire(lease);
    expect(granted).toMatchObject({ status: 'granted', fencingToken: ahead + 1 });
    expect(await redis.pttl('{lock:key}:fence')).toBeGreaterThan(KEEP_MS + 30_000 + 90_000);
    await store.extend([{ ...lease, ttlMs: 60_000 }]);
    expect(await redis.pttl('{lock:key}:fence')).toBeGreaterThan(KEEP_MS + 60_000 + 90_000);
  });

  it('outlive their lease by the clock step that is promised, and then are forgotten', async () => {
    await tokenOf();
    const life = await redis.pttl('{lock:key}:fence');
    expect(life).toBeGreaterThan(KEEP_MS);
    expect(life).toBeLessThanOrEqual(KEEP_MS + 30_000 + 1);

    const brief = (await openStore({ redis: server.url, fenceKeepMs: 50 })).store;
    try {
      const before = await brief.acquire(request('brief', { ttlMs: 60 }));
      await eventually(async () => (await redis.keys('*brief*')).length === 0);
      const after = await brief.acquire(request('brief'));
      if (before.status !== 'granted' || after.status !== 'granted') throw new Error('refused');
      expect(after.fencingToken).toBeGreaterThan(before.fencingToken);
    } finally {
      await brief.close();
    }
  });

  it('are raised by release and by forced release, so that a late renewal finds nothing of its own', async () => {
    for (const end of [
      (lease: ReturnType<typeof request>) => store.release(lease),
      () => endHolders(store, 'key'),
    ]) {
      const lease = request('key', { token: newOwnerToken(systemRuntime) });
      const outcome = await store.acquire(lease);
      await end(lease);
      const fence = Number(await redis.get('{lock:key}:fence'));
      expect(outcome.status === 'granted' && fence > outcome.fencingToken).toBe(true);
      expect(await store.extend([lease])).toEqual([
        { status: 'lost', reason: 'released-elsewhere' },
      ]);
      expect(await redis.exists('lock:key')).toBe(0);
    }
  });

  it('are changed by every release where keys are put back, and not made anew', async () => {
    const leases = [
      { key: 'the last one was used', used: 9, fence: '9', left: '10' },
      { key: 'turns were taken', used: 12, fence: '9', left: '13' },
      { key: 'another grant', used: 3, fence: '9', left: '10' },
      { key: 'just above', used: 8, fence: '9', left: '10' },
      { key: 'forgotten', used: 3, fence: undefined, left: null },
    ];
    for (const { key, fence } of leases) {
      await redis.set(`lock:${key}`, 'mine');
      if (fence !== undefined) await redis.set(`{lock:${key}}:fence`, fence, 'PX', KEEP_MS);
    }
    const answers = leases.map(({ key, used: lastToken }) =>
      run(
        releaseScript,
        encoded(releaseScript, {
          ...{ names: [namesOf(key)], token: 'mine', lineMode: 'quorum', lastToken },
          ...{ fenceKeepMs: KEEP_MS, member: '' },
        }),
      ),
    );
    expect(await Promise.all(answers)).toEqual([1, 1, 1, 1, 1]);
    expect(await redis.mget(leases.map(({ key }) => `{lock:${key}}:fence`))).toEqual(
      leases.map(({ left }) => left),
    );
    expect(await redis.exists(leases.map(({ key }) => `lock:${key}`))).toBe(0);
    for (const { key, fence } of leases)
      if (fence !== undefined) expect(await redis.pttl(`{lock:${key}}:fence`)).toBeGreaterThan(0);
  });

  it('are raised only where the lease is still held', async () => {
    await acquire('mine', 'a');
    await redis.set('lock:b', 'somebody else');
    const fence = (Date.now() + 1_000) * 1_000;
    expect(await raiseFence('mine', ['a', 'b'], fence)).toBe(1);
    expect(await redis.get('{lock:a}:fence')).toBe(String(fence));
    expect(await redis.exists('{lock:b}:fence')).toBe(0);
  });
});

describe('an outage', () => {
  it('of a lock of several keys is never a refusal', async () => {
    const service = new LockService({ redis: server.url });
    await redis.hset('lock:b', 'field', 'value');
    await expect(service.tryAcquire(['a', 'b'])).rejects.toBeInstanceOf(LockStoreUnavailableError);
    await service.shutdown();
  });
});
