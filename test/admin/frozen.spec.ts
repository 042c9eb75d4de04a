import { hostname } from 'node:os';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { LockService } from 'nestjs-holdfast';
import { LockAdmin, type HolderInfo } from 'nestjs-holdfast/admin';
import { startServers, stopAll } from '../techniques/conformance/backends.js';
import { ChildScript } from '../support/child-script.js';
import { eventually } from '../support/eventually.js';
import type { RedisServer } from '../support/redis-server.js';

const HOLDER = new URL('./holder-process.ts', import.meta.url);

const STUCK = { reason: 'frozen for an hour', by: 'ada' };

let servers: RedisServer[];
let open: { shutdown(): Promise<void> }[] = [];

beforeAll(async () => {
  Logger.overrideLogger(false);
  servers = await startServers(3);
});

afterEach(async () => {
  await Promise.all(open.map((each) => each.shutdown()));
  open = [];
});

afterAll(async () => {
  await stopAll(servers);
});

describe.each([
  ['one Redis', 1],
  ['three masters', 3],
])('an instance that holds a key on %s', (_store, masters) => {
  /** Another process holds the key, and two services of this one wait for it. */
  async function staged(key: string) {
    const urls = servers.slice(0, masters).map(({ url }) => url);
    const child = new ChildScript(HOLDER, [key, ...urls]);
    open.push({ shutdown: () => child.kill() });
    const services = [new LockService({ redis: urls }), new LockService({ redis: urls })];
    for (const service of services) {
      await service.open();
      open.push({ shutdown: () => service.shutdown(0) });
    }
    const admin = new LockAdmin(services[0]!);
    await eventually(async () => (await holder(admin, key))?.instance?.isListening === true, {
      withinMs: 30_000,
    });
    const waits = [...services, ...services, services[0]!].map((service) =>
      service.acquire(key, { wait: '1m' }),
    );
    await eventually(async () => {
      const { line } = await admin.describe(key);
      return line.flatMap(({ callers = [] }) => callers).length === waits.length;
    });
    return { child, admin, waits };
  }

  /** An instance tells of its locks every 5 s, in case that it cannot be asked later. */
  const isReported = (key: string, of: number): Promise<unknown> =>
    eventually(
      async () => {
        const token = String(await servers[of - 1]!.command('GET', `lock:${key}`));
        const [, id = ''] = /^holdfast:([\w-]+)\./.exec(token) ?? [];
        const record = await servers[of - 1]!.command('GET', `lock:{instances}:${id}`);
        return String(record).includes('holder-process');
      },
      { withinMs: 20_000 },
    );

  const holder = async (admin: LockAdmin, key: string): Promise<HolderInfo | undefined> =>
    (await admin.describe(key)).holders[0];

  it('is named while it is frozen; after a forced release the next one works, and it learns who did it as soon as it runs again', async () => {
    const key = `report:${String(masters)}`;
    const { child, admin, waits } = await staged(key);
    await isReported(key, masters);
    process.kill(child.pid, 'SIGSTOP');
    const { holders, unresponsive } = await eventually(async () => {
      const found = await admin.describe(key);
      return found.holders[0]?.isUnresponsive === true && found;
    });
    const instance = { application: 'reports', host: hostname(), pid: child.pid };
    expect(unresponsive).toMatchObject([instance]);
    const place = expect.stringContaining('holder-process');
    expect(holders).toMatchObject([{ instance, place, isUnresponsive: true, isForeign: false }]);
    expect(holders[0]!.since!.getTime()).toBeLessThanOrEqual(Date.now() + 1_000);
    expect(await admin.release(await admin.describe(key), STUCK)).toMatchObject({
      status: 'done',
    });
    await Promise.all(waits.map(async (wait) => (await wait).release()));
    process.kill(child.pid, 'SIGCONT');
    expect(JSON.parse(await child.output)).toEqual({
      name: 'LockLostError',
      reason: 'force-released',
      intervention: STUCK,
    });
  });

  it('is found by its id when it is dead, and everything that it held is freed', async () => {
    const key = `dead:${String(masters)}`;
    const { child, admin, waits } = await staged(key);
    const id = (await holder(admin, key))!.instance!.id;
    await child.kill();
    // It has just reported, and may reply in a moment.
    expect(await admin.releaseInstance({ id, isUnresponsive: true }, STUCK)).toMatchObject({
      status: 'refused',
    });
    expect(await admin.releaseInstance({ id }, STUCK)).toEqual({ status: 'done', keys: [key] });
    await Promise.all(waits.map(async (wait) => (await wait).release()));
    expect(await admin.audit(1)).toMatchObject([
      { action: 'release-instance', keys: [key], ...STUCK },
    ]);
  });
});
