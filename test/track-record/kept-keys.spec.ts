import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { LockService, MemoryLockStore, type LockModuleOptions } from 'nestjs-holdfast';
import { setImmediate } from 'node:timers/promises';
import { threeMasterCluster } from '../conformance/backends.js';
import { subtractCommandStats, sumCommandStats } from '../support/command-stats.js';
import { eventually } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';

let server: RedisServer;
let cluster: Awaited<ReturnType<typeof threeMasterCluster>>;
let services: LockService[] = [];

beforeAll(async () => {
  [server, cluster] = await Promise.all([RedisServer.start(), threeMasterCluster()]);
});

afterEach(async () => {
  await Promise.all(services.map((service) => service.shutdown(0)));
  services = [];
});

afterAll(() => Promise.all([server.stop(), cluster.close()]));

const STORES: Readonly<Record<string, () => Partial<LockModuleOptions>>> = {
  memory: () => ({ store: new MemoryLockStore() }),
  'one Redis': () => ({ redis: server.url }),
  'a Cluster': () => cluster.options,
};

async function open(options: Partial<LockModuleOptions>): Promise<LockService> {
  const service = new LockService({ ttl: '1m', wait: '1m', ...options });
  services.push(service);
  await service.open();
  return service;
}

const places = async (key: string): Promise<number> =>
  Number(await server.command('ZCARD', `{lock:${key}}:queue`));

describe.each(['memory', 'one Redis'])('callers of several keys in line (%s)', (store) => {
  it('HF-6 a release of two keys serves the older caller of both before a younger one of the first', async () => {
    const options = STORES[store]!();
    const [holding, older, younger] = [
      await open(options),
      await open(options),
      await open(options),
    ];
    const standing = async (count: number): Promise<void> => {
      if (store === 'memory') await setImmediate();
      else await eventually(async () => (await places('pair:a')) === count);
    };
    const order: string[] = [];
    const held = await holding.acquire(['pair:a', 'pair:b']);
    const both = older.run(['pair:a', 'pair:b'], () => order.push('older'));
    await standing(1);
    const one = younger.run('pair:a', () => order.push('younger'));
    await standing(2);
    await held.release();
    await Promise.all([both, one]);
    expect(order).toEqual(['older', 'younger']);
  });
});

describe('many callers of many keys', () => {
  it('HF-6 a request looks at a bounded number of places in line', async () => {
    // On a loaded machine the server takes its time for scripts of this size: one that is too late would be sent again, and take more.
    const options = { redis: server.url, nodeTimeout: '20s' } as const;
    const [holding, waiting] = [await open(options), await open(options)];
    const common = Array.from({ length: 50 }, (_, index) => `common:${String(index)}`);
    const last = await holding.acquire('last');
    const callers = Array.from({ length: 30 }, (_, index) =>
      waiting.run([...common, `own:${String(index)}`, 'last'], () => index),
    );
    await eventually(async () => (await places('last')) === callers.length, { withinMs: 20_000 });
    const before = await server.commandStats();
    await holding.tryAcquire([...common, 'last']);
    const added = subtractCommandStats(await server.commandStats(), before);
    await last.release();
    expect(sumCommandStats(added)).toBeLessThan(60_000);
    await expect(Promise.all(callers)).resolves.toHaveLength(callers.length);
  }, 45_000);
});
