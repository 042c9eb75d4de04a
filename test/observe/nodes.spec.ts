import { afterEach, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { registerLockMetrics } from 'nestjs-holdfast/prometheus';
import type { LockModuleOptions } from '../../lib/options/lock-module-options.js';
import { eventually } from '../support/eventually.js';
import { Locks } from '../support/locks.js';
import { RedisServer } from '../support/redis-server.js';

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function redis(): Promise<RedisServer> {
  const server = await RedisServer.start();
  stops.push(() => server.stop());
  return server;
}

async function open(options: LockModuleOptions): Promise<Locks> {
  const locks = new Locks({ nodeTimeout: '200ms', ...options });
  await locks.open();
  stops.push(() => locks.shutdown(0));
  return locks;
}

/** What a scrape shows of a metric: its values by the labels that matter. */
function scraped() {
  const register = new Registry();
  stops.push(registerLockMetrics({ register }));
  return async (name: string, ...labels: string[]): Promise<Record<string, number>> => {
    const [metric] = (await register.getMetricsAsJSON()).filter((each) => each.name === name);
    return Object.fromEntries(
      (metric?.values ?? []).map(({ value, labels: of }) => [
        labels.map((label) => String((of as Record<string, unknown>)[label])).join(' '),
        value,
      ]),
    );
  };
}

type Scrape = ReturnType<typeof scraped>;

const problemsIn = (scrape: Scrape) => scrape('holdfast_node_problem', 'problem');
const missingIn = async (scrape: Scrape) => (await scrape('holdfast_nodes_missing'))[''];

const WELL = { unreachable: 0, refusing: 0, quarantined: 0, 'no-messages': 0 };

describe('the metrics of a server', () => {
  it('say that it is down and back, and are gone when the service is closed; a scrape sends it nothing', async () => {
    const scrape = scraped();
    const server = await redis();
    const locks = await open({ redis: server.url, instance: false });
    await locks.run('order:42', () => undefined);

    expect(await problemsIn(scrape)).toEqual(WELL);
    expect(await missingIn(scrape)).toBe(0);
    const offsets = await scrape('holdfast_node_clock_offset_seconds', 'server_port');
    expect(Object.keys(offsets)).toEqual([String(server.port)]);
    // Our own clock shows whole milliseconds.
    expect(Math.abs(offsets[server.port] ?? NaN)).toBeLessThan(0.002);
    const stats = await server.commandsDuring(async () => {
      await problemsIn(scrape);
    });
    expect(Object.keys(stats)).toEqual([]);

    await server.kill();
    await eventually(async () => (await missingIn(scrape)) === 1);
    expect(await problemsIn(scrape)).toEqual({ ...WELL, unreachable: 1 });

    await server.restart();
    await eventually(async () => (await missingIn(scrape)) === 0, { withinMs: 15_000 });
    expect(await problemsIn(scrape)).toEqual(WELL);

    await locks.shutdown(0);
    expect(await problemsIn(scrape)).toEqual({});
  }, 30_000);

  it('say that it does not answer, although it is connected', async () => {
    const scrape = scraped();
    const server = await redis();
    const locks = await open({ redis: server.url });
    process.kill(server.pid, 'SIGSTOP');
    stops.push(() => process.kill(server.pid, 'SIGCONT'));

    await expect(locks.tryAcquire('order:42')).rejects.toThrow();
    expect(await problemsIn(scrape)).toEqual({ ...WELL, unreachable: 1 });
    expect(await missingIn(scrape)).toBe(1);

    process.kill(server.pid, 'SIGCONT');
    await eventually(async () => (await missingIn(scrape)) === 0, { withinMs: 15_000 });
  }, 30_000);

  it('say that it refuses locks, and that its messages do not arrive', async () => {
    const scrape = scraped();
    const server = await redis();
    await server.command(
      ...['ACL', 'SETUSER', 'mute', 'on', '>secret', '~*', 'resetchannels', '+@all'],
    );
    await server.command(...['ACL', 'SETUSER', 'none', 'on', '>secret', '~*', '&*', '+@all']);
    await server.command(...['ACL', 'SETUSER', 'none', '-eval', '-evalsha']);
    const as = (user: string): string => server.url.replace('redis://', `redis://${user}:secret@`);
    const locks = await open({ redis: as('mute') });

    const holder = await locks.acquire('order:42');
    await expect(locks.acquire('order:42', { wait: '200ms' })).rejects.toThrow();
    await holder.release();
    await eventually(async () => (await problemsIn(scrape))['no-messages'] === 1);
    expect(await missingIn(scrape)).toBe(0);

    await open({ redis: as('none') });
    expect(await problemsIn(scrape)).toMatchObject({ refusing: 1, unreachable: 0 });
    expect(await missingIn(scrape)).toBe(1);
  }, 20_000);

  it('say that it is in quarantine', async () => {
    const scrape = scraped();
    const server = await redis();
    await open({ redis: server.url, restartGuard: { maxTtl: '1m' } });

    expect(await problemsIn(scrape)).toEqual({ ...WELL, quarantined: 1 });
    expect(await missingIn(scrape)).toBe(1);
  });

  it('say which of three masters is down, and when too few are left', async () => {
    const scrape = scraped();
    const servers = await Promise.all([redis(), redis(), redis()]);
    await open({ redis: servers.map(({ url }) => url) });
    const unreachable = async (): Promise<readonly string[]> =>
      Object.entries(await scrape('holdfast_node_problem', 'problem', 'server_port'))
        .filter(([of, value]) => of.startsWith('unreachable') && value === 1)
        .map(([of]) => of.replace('unreachable ', ''));
    expect(await unreachable()).toEqual([]);

    await servers[0].kill();
    await eventually(async () => (await unreachable()).length === 1);
    expect(await unreachable()).toEqual([String(servers[0].port)]);
    expect(await missingIn(scrape)).toBe(0);

    await servers[1].kill();
    await eventually(async () => (await missingIn(scrape)) === 1);
  }, 20_000);
});

describe('the metrics of locks', () => {
  it('call a candidate a leader, whose wait is none of a request', async () => {
    const scrape = scraped();
    const server = await redis();
    const locks = await open({ redis: server.url });
    const elected = new Promise<void>((resolve) => {
      locks.lead('mailbox', {
        onElected: () => {
          resolve();
        },
      });
    });
    await elected;
    const waits = new Promise((resolve) => locks.on('waiting', resolve));
    locks.lead('mailbox', { onElected: () => undefined });
    await waits;

    const granted = await scrape('holdfast_acquire_duration_seconds', 'mode', 'outcome');
    expect(Object.keys(granted)).toContain('leader granted');
    expect(await scrape('holdfast_waiter_active', 'mode')).toEqual({ leader: 1 });
    expect(await scrape('holdfast_lock_active', 'mode')).toEqual({ leader: 1 });
  });

  it('count once-only work whose attempts are used up: the last failure, and who asks later', async () => {
    const scrape = scraped();
    const server = await redis();
    const locks = await open({ redis: server.url });
    const outcomes = () => scrape('holdfast_once_attempts_total', 'outcome');
    const attempt = () =>
      locks.runOnce('mail', { attempts: 2 }, () => {
        throw new Error('no mail server');
      });

    await expect(attempt()).rejects.toThrow('no mail server');
    expect(await outcomes()).toEqual({ failed: 1 });
    await expect(attempt()).rejects.toThrow('no mail server');
    expect(await outcomes()).toEqual({ failed: 1, exhausted: 1 });
    expect(await attempt()).toMatchObject({ outcome: 'exhausted' });
    expect(await outcomes()).toEqual({ failed: 1, exhausted: 2 });
  });
});
