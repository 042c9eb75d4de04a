import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { LockLostError } from '../../../lib/errors.js';
import type { LockModuleOptions } from '../../../lib/options/lock-module-options.js';
import { ClockShim } from '../simulation/redis/clock-shim.js';
import { detailed } from '../../support/detail.js';
import { eventually } from '../../support/eventually.js';
import { Locks } from '../../support/locks.js';
import { RedisServer } from '../../support/redis-server.js';

const TTL_MS = 20_000;
const HOUR_MS = 3_600_000;

let shim: ClockShim;
let servers: RedisServer[];

beforeAll(async () => {
  shim = new ClockShim();
  const { environment } = shim;
  const config = { 'enable-debug-command': 'yes' };
  servers = await Promise.all([1, 2, 3].map(() => RedisServer.start({ environment, config })));
}, 60_000);

beforeEach(async () => {
  await Promise.all(servers.map((server) => server.command('FLUSHALL')));
});

afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
  shim.remove();
});

/** The clock of these servers goes when they sleep, and only then. */
const setClock = (server: RedisServer, byMs: number): Promise<unknown> =>
  server.command('DEBUG', 'SLEEP', String(byMs / 1_000));

async function withTwo(
  masters: readonly RedisServer[],
  use: (one: Locks, other: Locks) => Promise<void>,
  options: Partial<LockModuleOptions> = {},
): Promise<void> {
  const urls = masters.map(({ url }) => url);
  const redis = urls.length === 1 ? urls[0]! : urls;
  const open = (): Locks => new Locks({ redis, ttl: TTL_MS, ...options });
  const [one, other] = [open(), open()];
  try {
    await use(one, other);
  } finally {
    await Promise.all([one.shutdown(0), other.shutdown(0)]);
  }
}

describe('the clock of the only server', () => {
  it('if the clock of the server is set forward, leases end early: holders detect this at the next renewal', async () => {
    await withTwo(servers.slice(0, 1), async (one, other) => {
      const lost = await one.acquire('key');
      expect(await other.tryAcquire('key')).toBeNull();
      await setClock(servers[0]!, HOUR_MS);
      const lock = await other.acquire('key');
      expect(lock.fencingToken).toBeGreaterThan(lost.fencingToken);
      await expect(lost.extend()).rejects.toThrow(LockLostError);
      expect(lost.isHeld).toBe(false);
      expect(await lock.release()).toBe(true);
    });
  });

  it('set back lets nobody in, and tokens still grow', async () => {
    await withTwo(servers.slice(0, 1), async (one, other) => {
      const lock = await one.acquire('key');
      await setClock(servers[0]!, -HOUR_MS / 60);
      expect(await other.tryAcquire('key')).toBeNull();
      await lock.extend();
      expect(await lock.release()).toBe(true);
      const next = await other.acquire('key');
      expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
    });
  });
});

describe('a server with a restart guard whose clock is set back', () => {
  const restartGuard = { maxTtl: TTL_MS, bootstrap: true };

  it('has forgotten nothing, and goes on granting', async () => {
    await withTwo(
      servers.slice(0, 1),
      async (one, other) => {
        await one.open();
        await setClock(servers[0]!, -HOUR_MS / 60);
        const lock = await one.acquire('key');
        await setClock(servers[0]!, -HOUR_MS / 60);
        expect(await (await other.acquire('another')).release()).toBe(true);
        expect(await lock.release()).toBe(true);
      },
      { restartGuard },
    );
  });

  it('goes on granting also after it was quarantined', async () => {
    await withTwo(
      servers.slice(0, 1),
      async (one) => {
        await one.open();
        await servers[0]!.command('FLUSHALL');
        await expect(one.tryAcquire('key')).rejects.toThrow(detailed('restartGuard'));
        await setClock(servers[0]!, TTL_MS);
        expect(await (await one.acquire('key')).release()).toBe(true);
        await setClock(servers[0]!, -HOUR_MS / 60);
        expect(await (await one.acquire('key')).release()).toBe(true);
      },
      { restartGuard },
    );
  });
});

/** The answers of a majority are enough for a caller: those of the others come later. */
async function everyServerHasKey(): Promise<void> {
  for (const server of servers)
    await eventually(async () => (await server.command('EXISTS', 'lock:key')) === 1, {
      withinMs: TTL_MS,
    });
}

describe('the clocks of several servers', () => {
  it.each([
    ['forward', HOUR_MS],
    ['back', -HOUR_MS / 60],
  ])(
    'if a minority of the clocks is set %s, no lock is lost, and the next renewal puts the key back',
    async (_way, byMs) => {
      await withTwo(servers, async (one, other) => {
        const lock = await one.acquire('key');
        await everyServerHasKey();
        await setClock(servers[1]!, byMs);
        expect(await other.tryAcquire('key')).toBeNull();
        await lock.extend();
        await everyServerHasKey();
        expect(await other.tryAcquire('key')).toBeNull();
        expect(await lock.release()).toBe(true);
        const next = await other.acquire('key');
        expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
      });
    },
  );

  it('if a majority of the clocks is set forward, another caller gets the lock', async () => {
    await withTwo(servers, async (one, other) => {
      const lost = await one.acquire('key');
      await everyServerHasKey();
      for (const server of servers.slice(0, 2)) await setClock(server, HOUR_MS);
      const lock = await other.acquire('key', { wait: TTL_MS });
      expect(lock.fencingToken).toBeGreaterThan(lost.fencingToken);
      await expect(lost.extend()).rejects.toThrow(LockLostError);
      expect(await lock.release()).toBe(true);
    });
  });
});
