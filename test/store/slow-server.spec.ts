import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { LockNotAcquiredError } from 'nestjs-holdfast';
import { eventually } from '../support/eventually.js';
import { Locks } from '../support/locks.js';
import { RedisServer } from '../support/redis-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const NODE_TIMEOUT_MS = 2_000;

let server: RedisServer;
let proxy: TcpProxy;
let services: Locks[];
let slow: Locks;
let fast: Locks;
let another: Locks;

beforeAll(async () => {
  server = await RedisServer.start();
}, 30_000);

beforeEach(async () => {
  proxy = await TcpProxy.start(server.port);
  const urls = [`redis://127.0.0.1:${String(proxy.port)}`, server.url, server.url];
  services = urls.map((redis) => new Locks({ redis, nodeTimeout: NODE_TIMEOUT_MS }));
  [slow, fast, another] = services as [Locks, Locks, Locks];
  for (const locks of services) await locks.open();
  // Both the connection for messages and the scripts are there before the server becomes slow.
  const held = await fast.acquire('warm');
  const waiting = slow.acquire('warm');
  await inLine('warm', 1);
  await held.release();
  const turn = await waiting;
  const next = fast.acquire('warm');
  await inLine('warm', 1);
  await turn.release();
  await (await next).release();
});

afterEach(async () => {
  proxy.delay(0);
  for (const locks of services) await locks.shutdown(0);
  await proxy.stop();
});

afterAll(() => server.stop());

const inLine = (key: string, callers: number): Promise<unknown> =>
  eventually(async () => (await server.command('ZCARD', `{lock:${key}}:queue`)) === callers);

/** Each answer takes seven tenths of the time limit. */
const slowDown = (): void => {
  proxy.delay(0.35 * NODE_TIMEOUT_MS);
};

describe('while each answer takes more than half of nodeTimeout, a caller', () => {
  it('stands in line until its wait is over, and is then refused', async () => {
    const held = await fast.acquire('place');
    slowDown();
    const waiting = slow.acquire('place', { wait: 2.5 * NODE_TIMEOUT_MS });
    await expect(waiting).rejects.toThrow(LockNotAcquiredError);
    await held.release();
  }, 30_000);

  it('that does not wait is refused, also where others stand in line', async () => {
    const held = await fast.acquire('refused');
    const waiting = another.acquire('refused', { wait: '20s' });
    await inLine('refused', 1);
    slowDown();
    await expect(slow.acquire('refused', { wait: 0 })).rejects.toThrow(LockNotAcquiredError);
    await held.release();
    await (await waiting).release();
  }, 30_000);

  it('releases a lock that others wait for', async () => {
    const held = await slow.acquire('released');
    const waiting = fast.acquire('released', { wait: '20s' });
    await inLine('released', 1);
    slowDown();
    expect(await held.release()).toBe(true);
    await (await waiting).release();
  }, 30_000);
});
