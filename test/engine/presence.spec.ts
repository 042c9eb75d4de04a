import { describe, expect, it } from '@jest/globals';
import { LockEngine } from '../../lib/engine/lock-engine.js';
import { LockStoreUnavailableError } from '../../lib/errors.js';
import { storeOption } from '../../lib/options/location.js';
import type { InstanceRecord } from '../../lib/store/admin-store.js';
import { deferred } from '../support/eventually.js';
import { ScriptedStore } from '../support/scripted-store.js';
import { settled, VirtualRuntime } from '../support/virtual-runtime.js';

const MACHINE = { application: 'shop', host: 'web-1', pid: 42, version: '1.0.0' };

/** A service that describes itself in a store, with what it has written there and logged. */
function present(options: { readonly instance?: false } = {}) {
  const runtime = new VirtualRuntime();
  const store = new ScriptedStore();
  const reports: InstanceRecord[] = [];
  const warnings: string[] = [];
  const report = store.admin.report.bind(store.admin);
  store.admin.report = async (record, lifeMs) => {
    reports.push(record);
    await report(record, lifeMs);
  };
  const log = { warn: (message: string) => void warnings.push(message), error: () => undefined };
  const locks = new LockEngine(
    { ...options, store: storeOption(store) },
    { runtime, log, machine: MACHINE },
  );
  return { runtime, store, locks, reports, warnings };
}

describe('an instance', () => {
  it('describes itself every 5 s, until it is shut down', async () => {
    const { runtime, store, locks, reports } = present();
    await locks.open();
    await runtime.advance(4_999);
    expect(reports).toMatchObject([MACHINE]);
    await runtime.advance(1);
    expect(reports).toHaveLength(2);
    await runtime.advance(5_000);
    expect(reports).toHaveLength(3);
    expect(await store.admin.instances()).toMatchObject([MACHINE]);
    await locks.shutdown(0);
    await locks.open();
    await runtime.advance(5_000);
    expect(reports).toHaveLength(3);
    expect(await store.admin.instances()).toEqual([]);
  });

  it('has described itself before it replaces a holder, although Redis did not reply when it started', async () => {
    const { store, locks, reports } = present();
    const { report } = store.admin;
    store.admin.report = async () => {
      store.admin.report = report;
      return Promise.reject(new Error('no reply'));
    };
    await locks.open();
    await settled();
    expect(reports).toEqual([]);
    await locks.run('key', { onLocked: 'replace' }, () => {
      expect(reports).toMatchObject([MACHINE]);
    });
    await locks.shutdown(0);
  });

  it('says nothing of itself with { instance: false }', async () => {
    const { runtime, locks, reports } = present({ instance: false });
    await locks.open();
    await runtime.advance(5_000);
    expect(reports).toEqual([]);
    await locks.shutdown(0);
  });

  it('says once which rights it lacks to describe itself, and that it has them again', async () => {
    const { runtime, store, locks, warnings } = present();
    const { report } = store.admin;
    const message = "NOPERM User app has no permissions to run the 'zadd' command";
    const nodes = [{ node: 'redis:6379', kind: 'error', message }] as const;
    store.admin.report = async () =>
      Promise.reject(new LockStoreUnavailableError({ operation: 'report', keys: [], nodes }));
    await locks.open();
    await runtime.advance(10_000);
    const lacks =
      `Operators cannot see who this instance is: redis:6379 refuses its record (${message}). ` +
      'Allow SET, DEL, ZADD, ZREM, ZREMRANGEBYSCORE and PEXPIRE for the Redis user, or give "instance: false". Locks are not affected.';
    expect(warnings).toEqual([lacks]);
    store.admin.report = report;
    await runtime.advance(5_000);
    expect(warnings).toEqual([lacks, 'Operators can see again who this instance is.']);
    await locks.shutdown(0);
  });
});

describe('a question to another instance', () => {
  /** The other one holds the key, and is never heard of. */
  function asking() {
    const service = present();
    const { admin } = service.store;
    const asked: string[] = [];
    const other = { id: 'other', ...MACHINE, startedAtMs: 0, seenMsAgo: 0, address: 'there' };
    admin.instances = async () => [other];
    admin.look = async ([key = '']) => [
      { key, holders: [{ token: 'holdfast:other.lease', remainingMs: 60_000 }], line: [] },
    ];
    admin.tell = async (address, text) => {
      const { question } = JSON.parse(text) as { question: { about: string } };
      asked.push(`${address}: ${question.about}`);
    };
    const outcomes: unknown[] = [];
    const ask = async (): Promise<void> => {
      for (const call of [
        service.locks.getLeader('key'),
        service.locks.forceRelease('key', { reason: 'stuck' }),
      ])
        void call.then((outcome) => outcomes.push(outcome));
      await settled();
    };
    return { ...service, asked, outcomes, ask };
  }

  const ANSWERS = [expect.objectContaining({ isSelf: false, ...MACHINE }), true];

  it.each<[string, (service: ReturnType<typeof asking>, leave: () => void) => unknown]>([
    ['fails', (_service, leave) => leave()],
    ['shuts down', ({ locks }) => void locks.shutdown(10_000)],
  ])('ends no lease any more when the call that replaces it %s', async (_, end) => {
    const service = asking();
    const { locks, runtime, asked } = service;
    await locks.open();
    await locks.acquire('other');
    const leaving = new AbortController();
    const options = { onLocked: 'replace', replaceWait: '10m', signal: leaving.signal } as const;
    const newer = locks.run('key', options, () => 'ran').catch(() => 'failed');
    await runtime.advance(100);
    expect(asked).toEqual(['there: end']);
    await end(service, () => leaving.abort(new Error('the client has gone')));
    expect(await newer).toBe('failed');
    await runtime.advance(5_000);
    expect(asked).toHaveLength(1);
  });

  it('is not sent for a call that failed while instances were listed', async () => {
    const { locks, store, asked } = asking();
    await locks.open();
    const listed = deferred();
    const { instances } = store.admin;
    store.admin.instances = async () => {
      await listed.promise;
      return instances();
    };
    const leaving = new AbortController();
    const options = { onLocked: 'replace', signal: leaving.signal } as const;
    const newer = locks.run('key', options, () => 'ran').catch(() => 'failed');
    await settled();
    leaving.abort(new Error('the client has gone'));
    expect(await newer).toBe('failed');
    listed.resolve();
    await settled();
    expect(asked).toEqual([]);
  });

  it('waits 250 ms for its reply', async () => {
    const { runtime, asked, outcomes, ask } = asking();
    await ask();
    expect(asked).toEqual(['there: key', 'there: end']);
    await runtime.advance(249);
    expect(outcomes).toEqual([]);
    await runtime.advance(1);
    expect(outcomes).toEqual(ANSWERS.slice(0, 1));
  });

  it.each([true, false])(
    'that is to end a lease comes every 250 ms for 1.5 s, whether replies arrive now or later: %s',
    async (isHearing) => {
      const { runtime, asked, outcomes, ask, store } = asking();
      Object.assign(store.admin, { isHearing });
      await ask();
      await runtime.advance(1_499);
      expect(asked.filter((each) => each === 'there: end')).toHaveLength(6);
      expect(outcomes).toEqual(ANSWERS.slice(0, 1));
      await runtime.advance(1);
      expect(outcomes).toEqual(ANSWERS);
      expect(runtime.timers).toBe(0);
    },
  );

  it.each<[string, (service: ReturnType<typeof asking>) => unknown]>([
    [
      'where no reply could be received',
      ({ store: { admin } }) =>
        Object.assign(admin, { isHearing: false, address: () => undefined }),
    ],
    ['after the shutdown', ({ locks }) => locks.shutdown(0)],
  ])('only says which lease has to end, and waits for nothing, %s', async (_, begin) => {
    const service = asking();
    await begin(service);
    await service.ask();
    expect(service.asked).toEqual(['there: end']);
    expect(service.outcomes).toEqual(ANSWERS);
    expect(service.runtime.timers).toBe(0);
  });
});
