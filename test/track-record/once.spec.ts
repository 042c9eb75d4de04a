import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { readFile } from 'node:fs/promises';
import {
  LockService,
  LockStoreUnavailableError,
  type LockModuleOptions,
  type RunOnceResult,
} from 'nestjs-holdfast';
import { keyNames } from '../../lib/store/redis/scripts/key-names.js';
import { onceScript, type OnceCall } from '../../lib/store/redis/scripts/once.js';
import { deferred, eventually, type Deferred } from '../support/eventually.js';
import { watchHandles } from '../support/no-leaks.js';
import { RedisServer } from '../support/redis-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const handles = watchHandles();
const services: LockService[] = [];
const proxies: TcpProxy[] = [];
let servers: readonly [RedisServer, RedisServer, RedisServer];

beforeAll(async () => {
  Logger.overrideLogger(false);
  servers = await Promise.all([RedisServer.start(), RedisServer.start(), RedisServer.start()]);
}, 60_000);

afterEach(async () => {
  for (const proxy of proxies) proxy.resume();
  await Promise.all(services.splice(0).map((service) => service.shutdown(0)));
  await Promise.all(proxies.splice(0).map((proxy) => proxy.stop()));
  for (const server of servers) {
    await server.command('CONFIG', 'SET', 'maxmemory', '0');
    await server.command('FLUSHALL');
  }
}, 60_000);

afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
  await handles.expectNoneOpen();
}, 60_000);

async function open(
  nodes: readonly { readonly port: number }[],
  options: Partial<LockModuleOptions> = {},
): Promise<LockService> {
  const redis = nodes.map(({ port }) => `redis://127.0.0.1:${String(port)}`);
  const service = new LockService({ redis, ttl: '1m', nodeTimeout: 500, ...options });
  services.push(service);
  await service.open();
  return service;
}

/** Where a server is, for a user with the rights that the documentation lists. */
async function modestUserAt(server: RedisServer): Promise<string> {
  const page = await readFile(new URL('../../docs/redis.md', import.meta.url), 'utf8');
  const rights = /ACL SETUSER locks on >secret (.*)/.exec(page)?.[1]?.split(' ') ?? [];
  await server.command('ACL', 'SETUSER', 'modest', 'reset', 'on', '>secret', ...rights);
  return `redis://modest:secret@127.0.0.1:${String(server.port)}`;
}

async function gates(): Promise<readonly [TcpProxy, TcpProxy, TcpProxy]> {
  const [first, second, third] = servers;
  const all = await Promise.all([
    TcpProxy.start(first.port),
    TcpProxy.start(second.port),
    TcpProxy.start(third.port),
  ] as const);
  proxies.push(...all);
  return all;
}

const stateAt = async (server: RedisServer): Promise<unknown> =>
  server.command('HGET', '{lock:job}:once', 'state');

interface Working {
  readonly ending: Promise<RunOnceResult<string>>;
  readonly work: Deferred<string>;
}

/** Has begun, and works until it is told how it ended. */
async function beginAt(locks: LockService): Promise<Working> {
  const [begun, work] = [deferred(), deferred<string>()];
  const ending = locks.runOnce('job', { wait: '20s', keepValue: true }, () => {
    begun.resolve();
    return work.promise;
  });
  ending.catch(() => undefined);
  await begun.promise;
  return { ending, work };
}

describe('work that is to be done once, on three masters', () => {
  /** The first attempt is superseded by a second one, of which the third master knows nothing: it believes the first that it is done. */
  async function supersededIsBelieved(): Promise<{ first: Working; second: Working }> {
    const [, , third] = servers;
    const [toFirst, toSecond, toThird] = await gates();
    const slow = await open([toFirst, toSecond, third]);
    const next = await open([servers[0], servers[1], toThird]);
    const first = await beginAt(slow);
    toThird.refuse();
    toThird.cut();
    await (await open(servers)).forceRelease('job');
    const second = await beginAt(next);
    // The first does not hear that the others refuse it, and cannot take back what the third accepts.
    for (const gate of [toFirst, toSecond]) gate.pause('to-client');
    first.work.resolve('of the first');
    await eventually(async () => (await stateAt(third)) === 'done');
    return { first, second };
  }

  it('HF-13 nobody believes a superseded attempt while the current one works, nor after it failed', async () => {
    const { first, second } = await supersededIsBelieved();
    const others = await open(servers);
    expect(await others.runOnce('job', { wait: 0 }, () => 'never')).toEqual({
      outcome: 'busy',
      attempts: 2,
    });
    second.work.reject(new Error('no route'));
    await expect(second.ending).rejects.toThrow('no route');
    const options = { wait: '20s', keepValue: true } as const;
    expect(await others.runOnce('job', options, () => 'of the third')).toEqual({
      outcome: 'completed',
      attempts: 3,
      value: 'of the third',
    });
    for (const proxy of proxies) proxy.resume();
    expect(await first.ending).toEqual({ outcome: 'superseded', attempts: 1 });
    for (const server of servers) await eventually(async () => (await stateAt(server)) === 'done');
    expect(await others.runOnce('job', options, () => 'never')).toEqual({
      outcome: 'done-elsewhere',
      attempts: 3,
      value: 'of the third',
    });
  });

  it('HF-13 there is one value, that of the current attempt, whichever two of them are asked', async () => {
    const { second } = await supersededIsBelieved();
    second.work.resolve('of the second');
    expect(await second.ending).toMatchObject({ outcome: 'completed', attempts: 2 });
    for (const away of servers) {
      const others = await open(servers);
      away.freeze();
      expect(await others.runOnce('job', { wait: '20s', keepValue: true }, () => 'never')).toEqual({
        outcome: 'done-elsewhere',
        attempts: 2,
        value: 'of the second',
      });
      away.thaw();
    }
  });

  it('HF-13 an attempt that only one of them knows to be done is done, and a majority knows it before anybody is told', async () => {
    const [first, second, third] = servers;
    const [toFirst, toSecond] = await gates();
    const { ending, work } = await beginAt(await open([toFirst, toSecond, third]));
    for (const gate of [toFirst, toSecond]) {
      gate.refuse();
      gate.cut();
    }
    work.resolve('of the first');
    await eventually(async () => (await stateAt(third)) === 'done');
    const others = await open(servers);
    const done = { outcome: 'done-elsewhere', attempts: 1, value: 'of the first' };
    expect(await others.runOnce('job', { wait: 0, keepValue: true }, () => 'never')).toEqual(done);
    third.freeze();
    expect(await Promise.all([first, second].map(stateAt))).toEqual(['done', 'done']);
    expect(await others.runOnce('job', { wait: 0, keepValue: true }, () => 'never')).toEqual(done);
    third.thaw();
    await services[0]?.shutdown(0);
    await ending.catch(() => undefined);
  });

  it('HF-21 a user with the rights that the documentation lists is told that it is done', async () => {
    const redis = await Promise.all(servers.map(modestUserAt));
    const locks = await open([], { redis });
    for (const server of servers) await server.command('ACL', 'LOG', 'RESET');
    await locks.runOnce('job', { keepValue: true }, () => 'done');
    expect(await locks.runOnce('job', { keepValue: true }, () => 'again')).toEqual({
      outcome: 'done-elsewhere',
      attempts: 1,
      value: 'done',
    });
    for (const server of servers) expect(await server.command('ACL', 'LOG')).toEqual([]);
  });
});

describe('work that is to be done once, on servers whose memory is full', () => {
  const fill = async (): Promise<void> => {
    for (const server of servers) await server.command('CONFIG', 'SET', 'maxmemory', '1');
  };

  it.each([1, 3])(
    'HF-18 that it is done is kept, and it is not done twice: %i server(s)',
    async (count) => {
      const locks = await open(servers.slice(0, count));
      const { ending, work } = await beginAt(locks);
      await fill();
      work.resolve('done');
      expect(await ending).toMatchObject({ outcome: 'completed', attempts: 1 });
      for (const server of servers) await server.command('CONFIG', 'SET', 'maxmemory', '0');
      expect(await locks.runOnce('job', { keepValue: true }, () => 'again')).toEqual({
        outcome: 'done-elsewhere',
        attempts: 1,
        value: 'done',
      });
    },
  );

  it('HF-18 so is how else an attempt ends, and that it goes on', async () => {
    const token = 'holdfast:me';
    const names = keyNames('lock:')('job');
    const run: RedisServer['command'] = (...parts) => servers[0].command(...parts);
    for (const what of ['keep', 'done', 'failed', 'final', 'returned', 'undo'] as const) {
      await run('FLUSHALL');
      await run('SET', names.main, token);
      const me = { token, owner: 'me', fencingToken: 1, lifeMs: 60_000 };
      const ask = (call: OnceCall): Promise<unknown> =>
        run('EVAL', onceScript.lua, ...onceScript.encode(names, call));
      await ask({ ...me, what: 'begin', attempts: 3, keepMs: 60_000 });
      if (what === 'undo') await ask({ ...me, what: 'done', attempt: 1, text: 'value' });
      await run('CONFIG', 'SET', 'maxmemory', '1');
      const answer = await ask({ ...me, what, attempt: 1, text: 'text' });
      expect([what, answer]).toEqual([what, [1]]);
      await run('CONFIG', 'SET', 'maxmemory', '0');
    }
  });

  it('HF-18 no attempt begins', async () => {
    const locks = await open(servers);
    let works = 0;
    await locks.runOnce('before', () => undefined); // the scripts are loaded
    await fill();
    const beginning = locks.runOnce('job', { wait: 0 }, () => (works += 1));
    await expect(beginning).rejects.toBeInstanceOf(LockStoreUnavailableError);
    expect(works).toBe(0);
  });
});
