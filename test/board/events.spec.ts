import { EventEmitter } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import { LockAdmin } from 'nestjs-holdfast/admin';
import { ADAPTERS, closeHttpApps } from '../nest/http-app.js';
import { until } from '../support/eventually.js';
import { EventClient, startBoard } from './board-app.js';

const clients: EventClient[] = [];

const openAt = async (url: string, query: Record<string, string>): Promise<EventClient> => {
  const client = new EventClient();
  clients.push(client);
  const status = await client.open(
    `${url}/locks/api/stream?${new URLSearchParams(query).toString()}`,
  );
  expect(status).toBe(200);
  return client;
};

afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await closeHttpApps();
});

/** Emits "close" when the response to who looks at this key is closed. */
function responseAt(app: INestApplication, key: string): EventEmitter {
  const events = new EventEmitter();
  (app.getHttpServer() as Server).on(
    'request',
    ({ url }: IncomingMessage, response: ServerResponse) => {
      if (url?.endsWith(`key=${key}`)) response.once('close', () => events.emit('close'));
    },
  );
  return events;
}

describe.each(ADAPTERS)('the events of the page on %s', (adapter) => {
  it('tell what is held, by whom, since when, and who waits', async () => {
    const { locks, url } = await startBoard({ adapter });
    const before = Date.now();
    const lock = await locks.acquire('order:42');
    const waiting = locks.acquire('order:42', { wait: '20s' });
    const client = await openAt(url, {});
    const snapshot = await client.next('snapshot');
    expect(snapshot).toMatchObject({
      status: { level: 'good' },
      keys: {
        rows: [
          {
            ...{ key: 'order:42', state: 'held', mode: 'exclusive', holders: 1, waiting: 1 },
            instance: { pid: process.pid, isUnresponsive: false },
          },
        ],
        ...{ found: 1, held: 1, more: false },
      },
      ...{ instances: [{ pid: process.pid }], unresponsive: [], audit: [], attention: [] },
      health: { hasQuorum: true },
    });
    const since = Date.parse(String(snapshot.keys?.rows[0]?.since));
    expect(since).toBeGreaterThanOrEqual(before - 1_000);
    expect(since).toBeLessThanOrEqual(Date.now() + 1_000);
    const rows = async () => (await client.next('snapshot')).keys?.rows ?? [];
    await lock.release();
    while ((await rows())[0]?.waiting !== 0);
    await (await waiting).release();
    while ((await rows()).length > 0);
  });

  it('tell of the keys that are wanted, a page at a time', async () => {
    const { locks, url } = await startBoard({ adapter });
    for (const key of ['b:2', 'a:2', 'a:1']) await locks.acquire(key);
    const client = await openAt(url, { search: 'a:', sort: 'key' });
    const { keys } = await client.next('snapshot');
    expect(keys?.rows.map(({ key }) => key)).toEqual(['a:1', 'a:2']);
    await Promise.all(
      Array.from({ length: 60 }, (_, index) => locks.acquire(`order:${String(index)}`)),
    );
    const second = await openAt(url, { page: '2', sort: 'nonsense', filter: 'nonsense' });
    for (;;) {
      const { keys: later } = await second.next('snapshot');
      if (later?.found !== 63) continue;
      expect(later).toMatchObject({ page: 2, pages: 2 });
      break;
    }
  });

  it('tell everything about one key', async () => {
    const { locks, url } = await startBoard({ adapter });
    const key = 'order:42/é?&=#%2F"';
    const lock = await locks.acquire(key);
    const waiting = locks.acquire(key, { wait: '20s' });
    const client = await openAt(url, { key });
    const seen = await client.next('key');
    expect(seen.lock).toMatchObject({
      key,
      state: 'held',
      fencingToken: lock.fencingToken,
      holders: [{ instance: { pid: process.pid }, isForeign: false, isUnresponsive: false }],
      line: [{ position: 1, callers: [{}] }],
      audit: [],
    });
    await lock.release();
    await (await waiting).release();
    for (;;) {
      const { lock: now } = await client.next('key');
      if (now?.state === 'free') break;
    }
  });

  it('tell that a lock was detached', async () => {
    const { locks, url } = await startBoard({ adapter });
    await (await locks.acquire('report')).detach({ ttl: '20s' });
    const { keys } = await (await openAt(url, {})).next('snapshot');
    expect(keys?.rows).toMatchObject([
      { key: 'report', mode: 'exclusive', isDetached: true, holders: 1, waiting: 0 },
    ]);
    const detached = await (await openAt(url, { key: 'report' })).next('key');
    expect(detached.lock?.holders).toMatchObject([{ isDetached: true, isUnresponsive: false }]);
  });

  it('say that a key is none', async () => {
    const { url } = await startBoard({ adapter });
    const client = await openAt(url, { key: '<script>alert(1)</script>' });
    expect(await client.next('key')).toMatchObject({
      problem: expect.stringContaining('"<"'),
    });
  });

  it.each([[{ key: '' }], [{ key: 'x'.repeat(1_025) }]])('refuse %j', async (query) => {
    const { get } = await startBoard({ adapter });
    const { status } = await get(`/locks/api/stream?${new URLSearchParams(query).toString()}`);
    expect(status).toBe(400);
  });

  it('are not for other sites, whatever the CORS settings of the application', async () => {
    const { get } = await startBoard({
      adapter,
      configure: (app) => app.enableCors({ origin: true, credentials: true }),
    });
    const origin = 'http://evil.example';
    // Over plain HTTP, browsers do not say what the site is.
    for (const site of [{ 'sec-fetch-site': 'cross-site' }, undefined]) {
      const headers = { origin, ...site };
      expect((await get('/locks/api/stream', { headers })).status).toBe(403);
    }
  });

  it('end when the client goes, and the store is asked no more', async () => {
    const { app, url } = await startBoard({ adapter });
    const asked = jest.spyOn(app.get(LockAdmin, { strict: false }), 'describe');
    const looksAt = (wanted: string): number =>
      asked.mock.calls.filter(([key]) => key === wanted).length;
    const closed = until(responseAt(app, 'left'), 'close');
    const client = await openAt(url, { key: 'left' });
    await client.next('key');
    client.close();
    await closed;
    const looks = looksAt('left');
    const other = await openAt(url, { key: 'other' });
    for (let event = 0; event < 3; event += 1) await other.next('key');
    expect(looksAt('left')).toBe(looks);
    expect(looksAt('other')).toBeGreaterThanOrEqual(3);
  });

  it('are one look at the store for all who see the same', async () => {
    const { app, url } = await startBoard({ adapter });
    const asked = jest.spyOn(app.get(LockAdmin, { strict: false }), 'describe');
    const one = await openAt(url, { key: 'a' });
    let seen = await one.next('key');
    const other = await openAt(url, { key: 'a' });
    const seenByOther = await other.next('key');
    while (seen.at < seenByOther.at) seen = await one.next('key');
    expect(seenByOther).toEqual(seen);
    for (let event = 0; event < 3; event += 1)
      expect(await one.next('key')).toEqual(await other.next('key'));
    expect(asked.mock.calls.length).toBeLessThanOrEqual(6);
  });

  it('end with the application, which does not wait for their clients', async () => {
    const { app, url } = await startBoard({ adapter, forceCloseConnections: false });
    const client = await openAt(url, {});
    const other = await openAt(url, { key: 'order:42' });
    await client.next('snapshot');
    const before = performance.now();
    await app.close();
    expect(performance.now() - before).toBeLessThan(4_000);
    await Promise.all([client.ended(), other.ended()]);
  });
});
