import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { LockService, LockStoreUnavailableError, type LockModuleOptions } from 'nestjs-holdfast';
import { setTimeout as sleep } from 'node:timers/promises';
import { releaseScript } from '../../lib/store/redis/scripts/release.js';
import type { Instant } from '../../lib/time/clock.js';
import { systemRuntime, type Runtime } from '../../lib/time/runtime.js';
import { ChildScript } from '../support/child-script.js';
import { detailed } from '../support/detail.js';
import { deferred, eventually } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const PROCESS = new URL('once-process.ts', import.meta.url);

let server: RedisServer;
let services: LockService[] = [];
const children: ChildScript[] = [];

beforeAll(async () => {
  Logger.overrideLogger(false); // outages are the subject here
  server = await RedisServer.start();
});

beforeEach(async () => {
  await server.command('FLUSHDB');
});

afterEach(async () => {
  await Promise.all(services.map((service) => service.shutdown(0)));
  await Promise.all(children.splice(0).map((child) => child.kill()));
  services = [];
});

afterAll(async () => {
  await server.stop();
  Logger.overrideLogger(['log', 'warn', 'error']);
});

async function newService(
  options: Partial<LockModuleOptions> = {},
  runtime = systemRuntime,
): Promise<LockService> {
  const service = new LockService({ redis: server.url, ...options }, { runtime });
  services.push(service);
  await service.open();
  return service;
}

const list = async (key: string): Promise<any[]> =>
  ((await server.command('LRANGE', key, 0, -1)) as string[]).map((text) =>
    text.startsWith('{') ? JSON.parse(text) : text,
  );

const state = async (key: string): Promise<Record<string, string>> => {
  const flat = (await server.command('HGETALL', `{lock:${key}}:once`)) as string[];
  return Object.fromEntries(
    flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1] ?? '']] : [])),
  );
};

const lineLength = (key: string): Promise<unknown> =>
  server.command('ZCARD', `{lock:${key}}:queue`);

describe('processes that are asked for the same work', () => {
  const start = (name: string, how: string): ChildScript => {
    const child = new ChildScript(PROCESS, [server.url, name, how]);
    children.push(child);
    return child;
  };

  const begun = (count: number): Promise<any[]> =>
    eventually(
      async () => {
        const entries = await list('begun');
        return entries.length === count ? entries : null;
      },
      { withinMs: 30_000 },
    );

  it('take over when the first is killed, and the second: the third does it, once', async () => {
    const byName = new Map(['a', 'b', 'c'].map((name) => [name, start(name, 'hang')] as const));
    const [first] = await begun(1);
    await eventually(async () => (await lineLength('work')) === 2, { withinMs: 30_000 });
    await byName.get(first.name)?.kill();
    const [, second] = await begun(2);
    await byName.get(second.name)?.kill();
    const [, , third] = await begun(3);
    await byName.get(third.name)?.output;
    expect((await list('begun')).map(({ attempt }) => attempt as number)).toEqual([1, 2, 3]);
    expect(new Set([first.name, second.name, third.name]).size).toBe(3);
    expect(await list('effects')).toEqual([third.name]);
    expect(await list('results')).toEqual([
      { name: third.name, outcome: 'completed', attempts: 3 },
    ]);
  }, 60_000);

  it('find that one had its only attempt that was killed after it had extended its lock', async () => {
    const first = start('first', 'extend');
    await begun(1);
    await first.kill();
    const locks = await newService();
    const next = { attempts: 1, ttl: '1s', keepDone: '1s', wait: '30s' } as const;
    expect(await locks.runOnce('work', next, () => undefined)).toEqual({
      outcome: 'exhausted',
      attempts: 1,
    });
  }, 60_000);

  it('do not hear a first one that was frozen and comes back', async () => {
    const slow = start('slow', 'pause');
    const [{ pid }] = await begun(1);
    const next = start('next', 'run');
    await eventually(async () => (await lineLength('work')) === 1, { withinMs: 30_000 });
    process.kill(pid, 'SIGSTOP');
    await next.output;
    await server.command('RPUSH', 'go', 'go');
    process.kill(pid, 'SIGCONT');
    await slow.output;
    expect(await list('results')).toEqual([
      { name: 'next', outcome: 'completed', attempts: 2 },
      { name: 'slow', outcome: 'superseded', attempts: 1 },
    ]);
    expect(await state('work')).toMatchObject({ state: 'done', attempt: '2' });
  }, 60_000);
});

describe('those who stand by', () => {
  it('send nothing', async () => {
    const [holder, ...others] = await Promise.all([1, 2, 3].map(() => newService()));
    const [started, mayEnd] = [deferred(), deferred()];
    const working = holder!.runOnce('work', async () => {
      started.resolve();
      await mayEnd.promise;
    });
    await started.promise;
    const standing = others.map((locks) => locks.runOnce('work', { wait: '60s' }, () => 1));
    await eventually(async () => (await lineLength('work')) === 2);
    await sleep(200); // the look right after the ear was opened
    const sent = await server.commandsSentDuring(() => sleep(1_000));
    expect(sent).toEqual([]);
    mayEnd.resolve();
    expect((await working).outcome).toBe('completed');
    const outcomes = (await Promise.all(standing)).map(({ outcome }) => outcome);
    expect(outcomes).toEqual(['done-elsewhere', 'done-elsewhere']);
  });
});

describe('an answer that is lost', () => {
  let proxy: TcpProxy;

  beforeEach(async () => {
    proxy = await TcpProxy.start(server.port);
  });

  afterEach(() => proxy.stop());

  const behindProxy = async (runtime?: Runtime): Promise<LockService> => {
    const redis = `redis://127.0.0.1:${proxy.port}`;
    const locks = await newService({ redis, nodeTimeout: 500 }, runtime);
    await locks.runOnce('before', () => undefined); // the scripts are loaded
    return locks;
  };

  it('to the begin of an attempt does not use one up', async () => {
    const locks = await behindProxy();
    const first = proxy.whenClientSends('begin');
    const working = locks.runOnce('work', { attempts: 1 }, ({ attempt }) => attempt);
    await first;
    proxy.pause('to-client');
    await proxy.whenClientSends('begin');
    proxy.resume();
    expect(await working).toEqual({ outcome: 'completed', attempts: 1, value: 1 });
  });

  it('to the mark that work is done does not make it fail, nor be repeated', async () => {
    const locks = await behindProxy();
    const marking = proxy.whenClientSends('done');
    const working = locks.runOnce('work', () => 'value');
    await marking;
    proxy.pause('to-client');
    await eventually(async () => (await state('work')).state === 'done');
    proxy.cut();
    proxy.resume();
    expect(await working).toEqual({ outcome: 'completed', attempts: 1, value: 'value' });
  });

  it('to the mark that work is done is asked for again, also when the wall clock is set forward meanwhile', async () => {
    let forwardMs = 0;
    const now = (): Instant => {
      const { monotonicMs, wallMs } = systemRuntime.now();
      return { monotonicMs, wallMs: wallMs + forwardMs };
    };
    const locks = await behindProxy({ ...systemRuntime, now });
    const marking = proxy.whenClientSends('done');
    const working = locks.runOnce('work', () => 'value');
    await marking;
    proxy.pause('to-client');
    await eventually(async () => (await state('work')).state === 'done');
    forwardMs = 3_600_000;
    proxy.cut();
    proxy.resume();
    expect(await working).toEqual({ outcome: 'completed', attempts: 1, value: 'value' });
  });

  it('is told to the caller when none comes at all, and the next one tries', async () => {
    const locks = await behindProxy();
    const other = await newService();
    const failure = locks.runOnce('work', { ttl: '600ms' }, () => {
      proxy.pause();
    });
    await expect(failure).rejects.toBeInstanceOf(LockStoreUnavailableError);
    await expect(failure).rejects.toThrow(detailed('Could not finish "work"'));
    expect(await other.runOnce('work', { wait: '20s' }, ({ attempt }) => attempt)).toMatchObject({
      outcome: 'completed',
      value: 2,
    });
  });

  it('to the begin and to all that follows is told, and does not run the work', async () => {
    const locks = await behindProxy();
    const begins = proxy.whenClientSends('begin');
    let ran = false;
    const failure = locks.runOnce('work', { ttl: '5s' }, () => {
      ran = true;
    });
    await begins;
    proxy.pause('to-client');
    await expect(failure).rejects.toThrow(detailed('Could not begin "work"'));
    expect(ran).toBe(false);
    // What may have begun was given back.
    expect(await state('work')).toMatchObject({ state: 'failed', attempt: '0' });
  });
});

describe('a shutdown', () => {
  it('gives attempts back ahead of their locks', async () => {
    const locks = await newService();
    const [started, mayEnd] = [deferred(), deferred()];
    const working = locks.runOnce('work', async () => {
      started.resolve();
      await mayEnd.promise;
    });
    await started.promise;
    const sent = await server.commandsSentDuring(() => locks.shutdown(0));
    // The service also describes itself, at any time.
    const scripts = sent.filter(
      ([name, , , key]) => name.startsWith('eval') && key !== 'lock:{instances}',
    );
    const returned = scripts.findIndex((command) => command.includes('returned'));
    const released = scripts.findIndex(
      ([, script]) => script === releaseScript.sha || script === releaseScript.lua,
    );
    expect(returned).toBe(0);
    expect(released).toBeGreaterThan(0);
    expect(await state('work')).toMatchObject({ state: 'failed', attempt: '0' });
    mayEnd.resolve();
    expect((await working).outcome).toBe('superseded');
  });

  it('gives an attempt back whose begin is on its way, and does not run it', async () => {
    const proxy = await TcpProxy.start(server.port);
    const locks = await newService({
      redis: `redis://127.0.0.1:${proxy.port}`,
      nodeTimeout: 5_000,
    });
    await locks.runOnce('before', () => undefined);
    const begins = proxy.whenClientSends('begin');
    let ran = false;
    const failure = locks.runOnce('work', () => {
      ran = true;
    });
    failure.catch(() => undefined);
    await begins;
    proxy.pause('to-client');
    const returning = proxy.whenClientSends('returned');
    const closing = locks.shutdown(0);
    await returning;
    proxy.resume();
    await closing;
    await expect(failure).rejects.toThrow();
    expect(ran).toBe(false);
    expect(await state('work')).toMatchObject({ state: 'failed', attempt: '0' });
    await proxy.stop();
  });
});
