import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { LockAdmin } from '../../lib/admin/lock-admin.js';
import { systemRuntime } from '../../lib/time/runtime.js';
import { eventually } from '../support/eventually.js';
import { Locks } from '../support/locks.js';
import { RedisServer } from '../support/redis-server.js';

const HOUR_MS = 3_600_000;

describe.each([1, 3])('instances whose clocks differ, over %d masters', (count) => {
  let redis: readonly string[];
  let servers: readonly RedisServer[];
  const opened: Locks[] = [];

  beforeAll(async () => {
    servers = await Promise.all(Array.from({ length: count }, () => RedisServer.start()));
    redis = servers.map(({ url }) => url);
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((each) => each.shutdown(0)));
    await Promise.all(servers.map((each) => each.command('FLUSHALL')));
  });
  afterAll(() => Promise.all(servers.map((each) => each.stop())));

  async function machine(host: string, aheadMs = 0): Promise<Locks> {
    const now = () => {
      const { monotonicMs, wallMs } = systemRuntime.now();
      return { monotonicMs, wallMs: wallMs + aheadMs };
    };
    const self = { host, pid: 1, application: 'shop', version: undefined };
    const locks = new Locks({ redis }, { ...systemRuntime, now }, self);
    opened.push(locks);
    await locks.open();
    await eventually(async () => (await hostsSeenBy(locks)).includes(host));
    return locks;
  }

  const hostsSeenBy = async (locks: Locks): Promise<readonly string[]> =>
    (await new LockAdmin(locks).instances()).map(({ host }) => host).sort();

  it.each([3 * HOUR_MS, -3 * HOUR_MS])('all are seen: one is %d ms ahead', async (aheadMs) => {
    const [first] = [await machine('a'), await machine('b', aheadMs), await machine('c')];
    expect(await hostsSeenBy(first)).toEqual(['a', 'b', 'c']);
  });

  it('have their interventions in the order in which these were made', async () => {
    const [here, behind] = [await machine('a'), await machine('b', -60_000)];
    for (const [locks, reason] of [
      [here, 'first'],
      [behind, 'second'],
      [here, 'third'],
    ] as const) {
      await here.acquire('key');
      const admin = new LockAdmin(locks);
      await admin.release(await admin.describe('key'), { reason });
    }
    const entries = await new LockAdmin(behind).audit();
    expect(entries.map(({ reason }) => reason)).toEqual(['third', 'second', 'first']);
  });

  it('have them in that order, although a server numbers its notes ahead and has not got the last', async () => {
    const locks = await machine('a');
    const admin = new LockAdmin(locks);
    const [server] = servers;
    const intervene = async (reason: string): Promise<void> => {
      await locks.acquire('key');
      await admin.release(await admin.describe('key'), { reason });
    };
    await intervene('first');
    const [log] = (await server?.command('KEYS', '*audit*')) as [string];
    const id = `${String(Date.now() + HOUR_MS)}-0`;
    await server?.command('XADD', log, id, 'entry', 'not a note');
    await intervene('second');
    await intervene('third');
    if (count > 1) {
      const [[last]] = (await server?.command('XREVRANGE', log, '+', '-', 'COUNT', '1')) as [
        [string],
      ];
      await server?.command('XDEL', log, last);
    }
    const entries = await admin.audit();
    expect(entries.flatMap(({ reason }) => reason ?? [])).toEqual(['third', 'second', 'first']);
  });
});
