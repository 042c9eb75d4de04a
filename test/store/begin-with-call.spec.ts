import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import type { AcquireOptions, Lock, LockModuleOptions } from 'nestjs-holdfast';
import { releaseScript } from '../../lib/store/redis/scripts/release.js';
import { acquireScript } from '../../lib/store/redis/scripts/acquire.js';
import { extendScript } from '../../lib/store/redis/scripts/extend.js';
import { eventually } from '../support/eventually.js';
import { Locks } from '../support/locks.js';
import { RedisServer } from '../support/redis-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';

let server: RedisServer;
let proxy: TcpProxy;
let redis: Redis;
const services: Locks[] = [];

beforeAll(async () => {
  server = await RedisServer.start();
  redis = new Redis(server.url);
});

beforeEach(async () => {
  await redis.flushall();
  proxy = await TcpProxy.start(server.port);
});

afterEach(async () => {
  proxy.resume();
  await Promise.all(services.splice(0).map((service) => service.shutdown(0)));
  await proxy.stop();
});

afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

function serviceAt(port: number, options: Partial<LockModuleOptions> = {}): Locks {
  const redisUrl = `redis://127.0.0.1:${String(port)}`;
  const service = new Locks({ redis: redisUrl, ttl: '30s', wait: '30s', ...options });
  services.push(service);
  return service;
}

/** One who holds the key, and one who waits for it over a network that the test has in hand. */
async function holderAndWaiter(options: AcquireOptions = {}, of: Partial<LockModuleOptions> = {}) {
  const holder = await serviceAt(server.port, of).acquire('key');
  const waiter = serviceAt(proxy.port, of);
  const waiting = waiter.acquire('key', options);
  await eventually(async () => (await redis.zcard('{lock:key}:queue')) === 1);
  // Its look has been answered: what was asked for later has.
  await waiter.inspect('key');
  return { holder, waiter, waiting };
}

const leftMs = (): Promise<number> => redis.pttl('lock:key');

/**
 * What is sent to the server while a lock changes from one process to the other, by name. Not the trial by which a store that has been
 * connected again finds out whether locks are granted: that is not over yet where the machine is busy.
 */
async function scriptsOf(change: () => Promise<Lock>): Promise<readonly string[]> {
  const names = new Map(
    Object.entries({ acquire: acquireScript, extend: extendScript, release: releaseScript }).map(
      ([name, { sha }]) => [sha, name] as const,
    ),
  );
  const sent = await server.commandsSentDuring(async () => {
    const lock = await change();
    await eventually(() => lock.remainingMs > 1_000);
  });
  return sent.flatMap(([command, sha = '', ...rest]) =>
    command !== 'evalsha' || rest.some((argument) => argument.includes('<trial:'))
      ? []
      : [names.get(sha) ?? sha],
  );
}

describe('a process that is called by a release', () => {
  it('begins before its confirmation has reached the server', async () => {
    const { holder, waiting } = await holderAndWaiter();
    proxy.pause('to-server');
    await holder.release();
    const lock = await waiting;
    expect(lock.isHeld).toBe(true);
    expect(lock.fencingToken).toBeGreaterThan(holder.fencingToken);
    expect(lock.remainingMs).toBeLessThan(1_000);
    expect(await leftMs()).toBeLessThanOrEqual(1_000);
    proxy.resume('to-server');
    await eventually(() => lock.remainingMs > 1_000);
    expect(await leftMs()).toBeGreaterThan(1_000);
    expect(await lock.release()).toBe(true);
    const next = await serviceAt(server.port).acquire('key');
    expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
  });

  it('has lost the lock before somebody else gets it, when its confirmation does not arrive', async () => {
    const { holder, waiting } = await holderAndWaiter();
    proxy.pause('to-server');
    await holder.release();
    const lock = await waiting;
    let isLost = false;
    lock.signal.addEventListener('abort', () => (isLost = true));
    const next = await serviceAt(server.port).acquire('key');
    expect(isLost).toBe(true);
    expect(lock.signal.reason).toMatchObject({ reason: 'store-unavailable' });
    expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
  });

  it('sends a renewal in the place of a request', async () => {
    const { holder, waiting } = await holderAndWaiter();
    const scripts = await scriptsOf(async () => {
      await holder.release();
      return waiting;
    });
    expect(scripts).toEqual(['release', 'extend']);
  });

  it.each<[string, AcquireOptions, Partial<LockModuleOptions>]>([
    ['the lease is not renewed', { autoExtend: false }, {}],
    ['a restart guard decides', {}, { ttl: '2s', restartGuard: { maxTtl: '2s' } }],
  ])(
    'asks first where %s, and gets the fencing tokens that were kept for it',
    async (_, options, of) => {
      const { holder, waiting } = await holderAndWaiter(options, of);
      const scripts = await scriptsOf(async () => {
        await holder.release();
        return waiting;
      });
      expect(scripts).toEqual(['release', 'acquire']);
      const { fencingToken } = await waiting;
      expect(fencingToken).toBeGreaterThan(holder.fencingToken);
      // Twice as many would run ahead of the clock of a busy server.
      const reserved = Number(await redis.get('{lock:key}:fence')) - fencingToken;
      expect(reserved).toBeLessThanOrEqual(1_023);
    },
  );

  it('asks first when its connection is a new one: nothing is known of the clock of the server there', async () => {
    const { holder, waiter, waiting } = await holderAndWaiter();
    const commandConnections = async (): Promise<readonly string[]> =>
      String(await server.command('CLIENT', 'LIST', 'TYPE', 'normal')).match(/^id=\d+/gm) ?? [];
    const before = await commandConnections();
    await server.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await eventually(async () => {
      const now = await commandConnections();
      return now.length === before.length && !now.some((id) => before.includes(id));
    });
    await waiter.inspect('key');
    const scripts = await scriptsOf(async () => {
      await holder.release();
      return waiting;
    });
    expect(scripts).toEqual(['release', 'acquire']);
  });

  it('asks first when the call has been on its way for too long', async () => {
    const { holder, waiting } = await holderAndWaiter();
    proxy.pause('to-client');
    await holder.release();
    await eventually(async () => (await leftMs()) < 400);
    const scripts = await scriptsOf(() => {
      proxy.resume('to-client');
      return waiting;
    });
    expect(scripts[0]).toBe('acquire');
  });
});
