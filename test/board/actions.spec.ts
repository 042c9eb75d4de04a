import { afterEach, describe, expect, it, jest } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import {
  getLockServiceToken,
  LockModule,
  type LockService,
  LockStoreUnavailableError,
} from 'nestjs-holdfast';
import { LockAdmin } from 'nestjs-holdfast/admin';
import { ADAPTERS, closeHttpApps } from '../nest/http-app.js';
import { fromPage, startBoard } from './board-app.js';

afterEach(closeHttpApps);

const RELEASE = '/locks/api/release';
const WHY = { reason: 'stuck since 3 am' };

const adminOf = (app: INestApplication): LockAdmin => app.get(LockAdmin, { strict: false });

/** What the page sends: the key, and the holders that it shows. */
async function bodyOf(app: INestApplication) {
  const { key, holders } = await adminOf(app).describe('order:42');
  const seen = holders.map(({ leaseId, fencingToken }) => ({ leaseId, fencingToken }));
  return { key, holders: seen, ...WHY };
}

/** The releases of these keys have these results and do nothing; those of other keys are real. */
function fakeReleases(
  app: INestApplication,
  results: Readonly<Record<string, ReturnType<LockAdmin['release']>>>,
): void {
  for (const result of Object.values(results)) result.catch(() => undefined);
  const admin = adminOf(app);
  const release = admin.release.bind(admin);
  jest
    .spyOn(admin, 'release')
    .mockImplementation((lock, why) => results[lock.key] ?? release(lock, why));
}

const unavailable = (key: string) =>
  new LockStoreUnavailableError({
    ...{ operation: 'release', keys: [key] },
    nodes: [{ node: 'memory', kind: 'timeout', message: 'no reply' }],
  });

describe.each(ADAPTERS)('the actions of the page on %s', (adapter) => {
  it('release a key: the holder is told by whom and why, and the audit log keeps it', async () => {
    const { app, post, locks, url } = await startBoard({
      adapter,
      board: { unguarded: true, user: async () => 'mia@example.com' },
    });
    const lock = await locks.acquire('order:42');
    const next = locks.acquire('order:42', { wait: '10s' });
    const body = await bodyOf(app);
    const answer = await post(RELEASE, body, { headers: fromPage(url) });
    expect(answer).toMatchObject({ status: 200, body: { status: 'done', keys: ['order:42'] } });
    expect(lock.signal.reason).toMatchObject({
      code: 'LOCK_LOST',
      reason: 'force-released',
      intervention: { by: 'mia@example.com', reason: 'stuck since 3 am' },
    });
    await (await next).release();
    expect(await adminOf(app).audit()).toMatchObject([
      { action: 'release', keys: ['order:42'], by: 'mia@example.com', reason: 'stuck since 3 am' },
    ]);
    expect((await post(RELEASE, body, { headers: fromPage(url) })).body).toEqual({
      status: 'nothing',
    });
  });

  it('are open to an operator whose name a header has in UTF-8, which Node reads as Latin-1', async () => {
    const user = (request: unknown) =>
      (request as { headers: Record<string, string> }).headers['x-forwarded-user'];
    const { app, post, locks, url } = await startBoard({
      adapter,
      board: { unguarded: true, user },
    });
    const lock = await locks.acquire('order:42');
    const name = Buffer.from('Łukasz').toString('latin1');
    const headers = { ...fromPage(url), 'x-forwarded-user': name };
    expect(await post(RELEASE, await bodyOf(app), { headers })).toMatchObject({ status: 200 });
    expect(lock.signal.reason).toMatchObject({ intervention: { by: 'Å\uFFFDukasz' } });
  });

  it('end the holder that the page showed, and not the one that has the key by now', async () => {
    const { app, post, locks, url } = await startBoard({ adapter });
    await locks.acquire('order:42');
    const seen = await bodyOf(app);
    const next = locks.acquire('order:42', { wait: '10s' });
    expect((await post(RELEASE, seen, { headers: fromPage(url) })).status).toBe(200);
    const lock = await next;
    expect(await post(RELEASE, seen, { headers: fromPage(url) })).toMatchObject({
      status: 409,
      body: { status: 'refused', now: { holders: [{ fencingToken: lock.fencingToken }] } },
    });
    expect(lock.isHeld).toBe(true);
  });

  it('leave the locks of an instance that replies', async () => {
    const { app, post, locks, url } = await startBoard({ adapter });
    const lock = await locks.acquire('a');
    const [instance] = await adminOf(app).instances();
    const body = { id: instance?.id, reason: 'its machine burnt' };
    const answer = await post('/locks/api/release-instance', body, { headers: fromPage(url) });
    expect(answer).toMatchObject({ status: 409, body: { status: 'refused' } });
    expect(lock.isHeld).toBe(true);
    expect(await adminOf(app).audit()).toEqual([]);
  });

  it('release several keys for one reason, but none that another holder has by now, and none of other software', async () => {
    const { app, post, locks, url } = await startBoard({ adapter });
    const held = await Promise.all(['a', 'b', 'c'].map((key) => locks.acquire(key)));
    const theirs = { key: 'a{key', holders: [] };
    const looks = ['a', 'b', 'c'].map((key) => adminOf(app).describe(key));
    const seen = [theirs, ...(await Promise.all(looks))];
    await held[1]!.release();
    await held[2]!.release();
    const later = await locks.acquire('c');
    const body = { locks: seen, reason: 'a bad deploy' };
    const { body: answer } = await post('/locks/api/release-several', body, {
      headers: fromPage(url),
    });
    expect(answer).toEqual({
      ...{ status: 'done', keys: ['a'], nothing: ['b'], refused: ['c'], unconfirmed: [] },
      invalid: ['a{key'],
    });
    expect([held[0]!.signal.aborted, later.isHeld]).toEqual([true, true]);
    expect(await adminOf(app).audit()).toMatchObject([{ keys: ['a'], reason: 'a bad deploy' }]);
    for (const wrong of [
      undefined,
      [],
      'a',
      [{ key: 'a' }],
      Array.from({ length: 201 }, () => ({ key: 'a', holders: [] })),
    ])
      expect(
        await post(
          '/locks/api/release-several',
          { locks: wrong, reason: 'why' },
          { headers: fromPage(url) },
        ),
      ).toMatchObject({ status: 400 });
  });

  it('say which of several keys were released, and of which the store did not confirm it', async () => {
    const { app, post, locks, url } = await startBoard({ adapter });
    const names = ['a', 'b', 'c', 'd', 'e'];
    await Promise.all(names.map((key) => locks.acquire(key)));
    const seen = await Promise.all(names.map((key) => adminOf(app).describe(key)));
    fakeReleases(app, {
      a: Promise.reject(unavailable('a')),
      c: Promise.resolve({ status: 'done', keys: ['c'], unconfirmed: ['c'], notRecorded: 'first' }),
      d: Promise.reject(new Error('a bug')),
      e: Promise.resolve({ status: 'done', keys: ['e'], notRecorded: 'second' }),
    });
    const body = { locks: seen, reason: 'a bad deploy' };
    const { status, body: answer } = await post('/locks/api/release-several', body, {
      headers: fromPage(url),
    });
    expect(status).toBe(200);
    expect(answer).toEqual({
      ...{ status: 'done', keys: ['b', 'c', 'e'], nothing: [], refused: [] },
      ...{ unconfirmed: ['a', 'c', 'd'], invalid: [], notRecorded: 'first' },
    });
  });

  it('end at the first of several keys where an error shows that none was released', async () => {
    const { app, post, locks, url } = await startBoard({ adapter });
    const held = await Promise.all(['a', 'b'].map((key) => locks.acquire(key)));
    const seen = await Promise.all(['a', 'b'].map((key) => adminOf(app).describe(key)));
    fakeReleases(app, { a: Promise.reject(new Error('a bug')) });
    const body = { locks: seen, reason: 'a bad deploy' };
    expect(
      await post('/locks/api/release-several', body, { headers: fromPage(url) }),
    ).toMatchObject({ status: 500 });
    expect(held.map(({ isHeld }) => isHeld)).toEqual([true, true]);
  });

  it('are done to the locks of the service that the board is for', async () => {
    const name = 'payments';
    const { app, post, locks, url } = await startBoard({
      ...{ adapter, board: { unguarded: true, name } },
      parts: { imports: [LockModule.forRoot({ name, store: 'memory' })] },
    });
    const payments = app.get<LockService>(getLockServiceToken(name), { strict: false });
    const [own, other] = [await payments.acquire('order:42'), await locks.acquire('order:42')];
    const { body } = await post(RELEASE, await bodyOf(app), { headers: fromPage(url) });
    expect(body).toEqual({ status: 'done', keys: ['order:42'] });
    expect([own.isHeld, other.isHeld]).toEqual([false, true]);
  });

  it('forget work that was done once', async () => {
    const { post, locks, url } = await startBoard({ adapter });
    let runs = 0;
    const work = () => locks.runOnce('report:1', async () => ++runs);
    await work();
    const once = { state: 'done', attempts: 1 };
    const body = { key: 'report:1', once, reason: 'it was wrong' };
    const { body: answer } = await post('/locks/api/forget-once', body, { headers: fromPage(url) });
    expect(answer).toEqual({ status: 'done', keys: ['report:1'] });
    await work();
    expect(runs).toBe(2);
    const stale = { ...body, once: { state: 'failed', attempts: 1 } };
    expect(await post('/locks/api/forget-once', stale, { headers: fromPage(url) })).toMatchObject({
      status: 409,
      body: { now: { once } },
    });
  });

  it('are for the page itself only', async () => {
    const { app, get, post, locks, url } = await startBoard({ adapter });
    const lock = await locks.acquire('order:42');
    const body = await bodyOf(app);
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
      const { status } = await post(RELEASE, body, { headers });
      expect([headers, status]).toEqual([headers, 403]);
    }
    const query = new URLSearchParams({ key: body.key, ...WHY }).toString();
    expect((await get(`${RELEASE}?${query}`, { headers: own })).status).toBe(404);
    expect(lock.signal.aborted).toBe(false);
    const behindProxy = { ...own, origin: 'https://example.com', 'sec-fetch-site': 'same-origin' };
    expect((await post(RELEASE, body, { headers: behindProxy })).status).toBe(200);
  });

  it('need a reason, a key, and what the operator saw', async () => {
    const { app, post, locks, url } = await startBoard({ adapter });
    const lock = await locks.acquire('order:42');
    const whole = await bodyOf(app);
    const { key, holders } = whole;
    const release: readonly unknown[] = [
      {},
      { key, holders },
      { ...whole, reason: ' ' },
      { ...whole, reason: 42 },
      { ...whole, reason: 'x'.repeat(501) },
      { ...whole, reason: 'stuck\nsince 3 am' },
      { ...whole, key: ['order:42'] },
      { ...whole, key: 'x'.repeat(1_025) },
      { ...whole, key: 'a key\nof others' },
      { holders, reason: 'stuck' },
      { key, reason: 'stuck' },
      { ...whole, holders: {} },
      { ...whole, holders: [null] },
      { ...whole, holders: [{ fencingToken: 7 }] },
      { ...whole, holders: [{ leaseId: 'a', fencingToken: '7' }] },
      [],
    ];
    const refused: readonly (readonly [string, unknown])[] = [
      ...release.map((body) => ['release', body] as const),
      ['release-instance', { id: 7, ...WHY }],
      ['forget-once', { key, ...WHY }],
      ['forget-once', { key, once: { state: 'done' }, ...WHY }],
      ['forget-once', { key, once: { state: 1, attempts: 1 }, ...WHY }],
      ['forget-once', { key: 'a{key', once: { state: 'done', attempts: 1 }, ...WHY }],
    ];
    for (const [path, body] of refused) {
      const { status } = await post(`/locks/api/${path}`, body, { headers: fromPage(url) });
      expect([path, body, status]).toEqual([path, body, 400]);
    }
    expect(lock.signal.aborted).toBe(false);
  });
});
