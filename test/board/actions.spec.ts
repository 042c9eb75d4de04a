import { afterEach, describe, expect, it } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import { LockAdmin } from 'nestjs-holdfast/admin';
import { ADAPTERS, closeHttpApps } from '../nest/http-app.js';
import { fromPage, startBoard } from './board-app.js';

afterEach(closeHttpApps);

const RELEASE = '/locks/api/release';
const BODY = { key: 'order:42', reason: 'stuck since 3 am' };

const adminOf = (app: INestApplication): LockAdmin => app.get(LockAdmin, { strict: false });

describe.each(ADAPTERS)('the actions of the page on %s', (adapter) => {
  it('release a key: the holder is told by whom and why, and the audit log keeps it', async () => {
    const { app, post, locks, url } = await startBoard({
      adapter,
      board: { unguarded: true, user: async () => 'mia@example.com' },
    });
    const lock = await locks.acquire('order:42');
    const next = locks.acquire('order:42', { wait: '10s' });
    const answer = await post(RELEASE, BODY, { headers: fromPage(url) });
    expect(answer).toMatchObject({ status: 200, body: { keys: ['order:42'] } });
    expect(lock.signal.reason).toMatchObject({
      code: 'LOCK_LOST',
      reason: 'force-released',
      intervention: { by: 'mia@example.com', reason: 'stuck since 3 am' },
    });
    await (await next).release();
    expect(await adminOf(app).audit()).toMatchObject([
      { action: 'release', keys: ['order:42'], by: 'mia@example.com', reason: 'stuck since 3 am' },
    ]);
    expect((await post(RELEASE, BODY, { headers: fromPage(url) })).body).toEqual({ keys: [] });
  });

  it('release the locks of an instance', async () => {
    const { app, post, locks, url } = await startBoard({ adapter });
    const held = [await locks.acquire('a'), await locks.acquire('b')];
    const [instance] = await adminOf(app).instances();
    const body = { id: instance?.id, reason: 'its machine burnt' };
    const { body: answer } = await post('/locks/api/release-instance', body, {
      headers: fromPage(url),
    });
    expect(answer).toEqual({ keys: ['a', 'b'] });
    for (const { signal } of held) expect(signal.aborted).toBe(true);
    expect(await adminOf(app).audit()).toMatchObject([{ by: 'board' }]);
  });

  it('forget work that was done once', async () => {
    const { post, locks, url } = await startBoard({ adapter });
    let runs = 0;
    const work = () => locks.runOnce('report:1', async () => ++runs);
    await work();
    const body = { key: 'report:1', reason: 'it was wrong' };
    const { body: answer } = await post('/locks/api/forget-once', body, { headers: fromPage(url) });
    expect(answer).toEqual({ keys: ['report:1'] });
    await work();
    expect(runs).toBe(2);
  });

  it('are for the page itself only', async () => {
    const { get, post, locks, url } = await startBoard({ adapter });
    const lock = await locks.acquire('order:42');
    const own = fromPage(url);
    const { 'x-holdfast-board': _, ...withoutHeader } = own;
    const { origin: __, ...withoutOrigin } = own;
    const forgeries: readonly Record<string, string>[] = [
      withoutHeader,
      withoutOrigin,
      { ...own, 'x-holdfast-board': 'yes' },
      { ...own, origin: 'http://evil.example' },
      { ...own, origin: 'null' },
      { ...own, origin: `${own.origin}.evil.example` },
      { ...own, 'sec-fetch-site': 'cross-site' },
      { ...own, 'sec-fetch-site': 'same-site' },
      { ...own, 'sec-fetch-site': 'none' },
      { ...withoutHeader, 'sec-fetch-site': 'same-origin' },
      { ...withoutHeader, 'content-type': 'text/plain' },
    ];
    for (const headers of forgeries) {
      const { status } = await post(RELEASE, BODY, { headers });
      expect([headers, status]).toEqual([headers, 403]);
    }
    const query = new URLSearchParams(BODY).toString();
    expect((await get(`${RELEASE}?${query}`, { headers: own })).status).toBe(404);
    expect(lock.signal.aborted).toBe(false);
    const behindProxy = { ...own, origin: 'https://example.com', 'sec-fetch-site': 'same-origin' };
    expect((await post(RELEASE, BODY, { headers: behindProxy })).status).toBe(200);
  });

  it('need a reason, and a key', async () => {
    const { post, locks, url } = await startBoard({ adapter });
    const lock = await locks.acquire('order:42');
    const refused = [
      {},
      { key: 'order:42' },
      { key: 'order:42', reason: ' ' },
      { key: 'order:42', reason: 42 },
      { key: 'order:42', reason: 'x'.repeat(501) },
      { key: ['order:42'], reason: 'stuck' },
      { key: 'x'.repeat(1_025), reason: 'stuck' },
      { reason: 'stuck' },
      [],
    ];
    for (const body of refused) {
      const { status } = await post(RELEASE, body, { headers: fromPage(url) });
      expect([body, status]).toEqual([body, 400]);
    }
    expect(lock.signal.aborted).toBe(false);
  });
});
