import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { LockService, NonRetryableError, type LockModuleOptions } from 'nestjs-holdfast';
import {
  ACQUIRE,
  EVENTS,
  HOLD,
  RELEASE,
  RENEW,
  REQUEST,
  WORK,
} from '../../lib/observe/channels.js';
import type { HoldContext } from '../../lib/observe/contexts.js';
import { watch } from '../../lib/observe/feed.js';
import type { CurrentEventName } from '../../lib/observe/lock-events.js';
import { masters, memory, oneRedis } from '../techniques/conformance/backends.js';
import type { Backend } from '../techniques/conformance/suite.js';
import { eventually } from '../support/eventually.js';

type Heard = Readonly<Record<string, unknown>>;

const stops: (() => void)[] = [];

/** Everything that is published while a test runs. */
function listen() {
  const ends = { acquire: [], hold: [], renew: [], release: [], request: [] } as Record<
    string,
    Heard[]
  >;
  const events: [CurrentEventName, Heard][] = [];
  const keep = (name: string) => (context: object) => ends[name]?.push(context as Heard);
  stops.push(
    watch(ACQUIRE, { asyncEnd: keep('acquire') }),
    watch(HOLD, { asyncEnd: keep('hold') }),
    watch(RENEW, { asyncEnd: keep('renew') }),
    watch(RELEASE, { asyncEnd: keep('release') }),
    watch(REQUEST, { asyncEnd: keep('request') }),
  );
  for (const [event, { name }] of Object.entries(EVENTS)) {
    const onMessage = (message: unknown): void =>
      void events.push([event as CurrentEventName, message as Heard]);
    subscribe(name, onMessage);
    stops.push(() => void unsubscribe(name, onMessage));
  }
  const names = (): readonly string[] => events.map(([name]) => name);
  const of = (name: CurrentEventName): readonly Heard[] =>
    events.filter(([event]) => event === name).map(([, message]) => message);
  return { ends, names, of };
}

afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

describe.each([
  ['memory', memory],
  ['one Redis', oneRedis],
  ['three masters', () => masters(3)],
])('the channels of locks on %s', (name, open: () => Promise<Backend>) => {
  let backend: Backend;
  let services: LockService[] = [];
  let key = '';
  let made = 0;

  beforeAll(async () => {
    Logger.overrideLogger(false);
    backend = await open();
  });
  afterAll(() => backend.close());
  afterEach(async () => {
    await Promise.all(services.map((service) => service.shutdown(0)));
    services = [];
  });

  const service = (options: Partial<LockModuleOptions> = {}): LockService => {
    key = `key:${made++}`;
    const locks = new LockService({ ...backend.options, ...options }, { name: 'orders' });
    services.push(locks);
    return locks;
  };

  it('tell of a lock from its acquire to its release, and never its owner token', async () => {
    const locks = service();
    const { ends, names, of } = listen();
    await locks.run(key, () => undefined);
    const about = { service: 'orders', keys: [key], mode: 'exclusive' };
    const fencingToken = expect.any(Number);
    expect(ends.acquire).toEqual([
      {
        ...about,
        ...{ nested: false, hasWaited: false, outcome: 'granted', fencingToken },
        waitedMs: expect.any(Number),
      },
    ]);
    const held = { ...about, fencingToken, heldMs: expect.any(Number), outcome: 'released' };
    expect(ends.hold).toEqual([held]);
    expect(ends.release).toEqual([held]);
    expect(names()).toEqual(['acquired', 'released']);
    expect(of('released')).toEqual([{ ...about, fencingToken, heldMs: expect.any(Number) }]);
    const operations = ends.request?.map(
      ({ operation, outcome }) => `${String(operation)} ${String(outcome)}`,
    );
    if (name === 'memory') expect(operations).toEqual([]);
    else
      expect(operations).toEqual(expect.arrayContaining(['acquire answered', 'release answered']));
    expect(JSON.stringify(ends)).not.toMatch(/holdfast:/);
  });

  it('tell of refusals, waits and aborted waits, of nested calls and deadlocks', async () => {
    const locks = service();
    const { ends, of } = listen();
    const outcomes = () => ends.acquire?.map(({ outcome }) => outcome);
    await locks.run(key, async () => {
      await locks.run(key, () => undefined);
      await expect(locks.run([key, 'more'], () => undefined)).rejects.toThrow();
    });
    expect(outcomes()).toEqual(['granted', 'granted', 'failed']);
    expect(ends.acquire?.map(({ nested }) => nested)).toEqual([false, true, false]);
    expect(ends.hold).toHaveLength(1);
    const held = await locks.acquire(key);
    expect(await locks.tryAcquire(key)).toBeNull();
    const leaving = new AbortController();
    const waiting = locks.acquire(key, { signal: leaving.signal, wait: '20s' });
    await eventually(() => of('waiting').length === 1);
    leaving.abort();
    await expect(waiting).rejects.toThrow();
    expect(outcomes()).toEqual(['granted', 'granted', 'failed', 'granted', 'refused', 'aborted']);
    expect(ends.acquire?.map(({ hasWaited }) => hasWaited).at(-1)).toBe(true);
    expect(of('waiting')).toEqual([
      { service: 'orders', keys: [key], mode: 'exclusive', because: 'held' },
    ]);
    expect(of('refused')).toHaveLength(1);
    const next = locks.acquire(key, { wait: '20s' });
    await eventually(() => of('waiting').length === 2);
    locks.refuseWaiting();
    await expect(next).rejects.toThrow();
    expect(outcomes()?.at(-1)).toBe('closed');
    await held.release();
  });

  it('tell of deadlocks', async () => {
    const locks = service();
    const { ends } = listen();
    const [one, two] = [`${key}:1`, `${key}:2`];
    const both = { ready: 0 };
    const take = (first: string, second: string): Promise<void> =>
      locks.run(first, async () => {
        both.ready += 1;
        await eventually(() => both.ready === 2);
        await locks.run(second, { wait: '5s' }, () => undefined);
      });
    await Promise.allSettled([take(one, two), take(two, one)]);
    expect(ends.acquire?.map(({ outcome }) => outcome)).toContain('deadlock');
  });

  it('tell of renewals and of a loss', async () => {
    const locks = service();
    const { ends, of } = listen();
    const lock = await locks.acquire(key, { ttl: '30s' });
    await lock.extend();
    expect(ends.renew).toEqual([
      {
        service: 'orders',
        leases: [
          {
            ...{ service: 'orders', keys: [key], mode: 'exclusive' },
            ...{ fencingToken: lock.fencingToken, outcome: 'renewed' },
          },
        ],
      },
    ]);
    expect(of('renewed')).toHaveLength(1);
    await locks.forceRelease(key);
    await expect(lock.extend()).rejects.toThrow();
    expect(of('lost')).toHaveLength(1);
    expect(ends.hold).toEqual([
      expect.objectContaining({ outcome: 'lost', reason: of('lost')[0]?.reason }),
    ]);
  });

  it('tell of a turn that passes inside the process', async () => {
    const locks = service({ handoff: { tenure: '20s' } });
    const { ends, of } = listen();
    const first = await locks.acquire(key);
    const second = locks.acquire(key);
    await eventually(() => of('waiting').length === 1);
    const follows: unknown[] = [];
    stops.push(
      watch(HOLD, {
        start: (hold) => follows.push(hold.follows?.fencingToken),
        asyncEnd: () => undefined,
      }),
    );
    await first.release();
    const lock = await second;
    if (name !== 'one Redis') return; // no turns are reserved there
    expect(of('handedOff')).toEqual([
      expect.objectContaining({
        fencingToken: lock.fencingToken,
        previousToken: first.fencingToken,
      }),
    ]);
    expect(follows).toEqual([first.fencingToken]);
    await lock.release();
    expect(ends.hold).toHaveLength(2);
    for (const hold of ends.hold ?? [])
      expect(hold).not.toHaveProperty('follows', expect.anything());
  });

  it('run work in the async context that is bound to them, once around nested calls', async () => {
    const locks = service();
    const store = new AsyncLocalStorage<HoldContext | string>();
    WORK.bindStore(store, (hold) => hold);
    stops.push(
      watch(HOLD, { start: () => undefined, asyncEnd: () => undefined }),
      () => void WORK.unbindStore(store),
    );
    await locks.run(key, async () => {
      expect(store.getStore()).toMatchObject({ keys: [key] });
      await store.run('own', () =>
        locks.run(key, () => {
          expect(store.getStore()).toBe('own');
        }),
      );
    });
    expect(store.getStore()).toBeUndefined();
  });

  it('tell of attempts at work that is to be done once', async () => {
    const locks = service();
    const { of } = listen();
    if (name === 'three masters') {
      await expect(locks.runOnce(`${key}:a`, () => 1)).rejects.toThrow('needs one Redis');
      expect(of('onceAttempt')).toEqual([]);
      return;
    }
    await locks.runOnce(`${key}:a`, () => 1);
    await expect(
      locks.runOnce(`${key}:b`, () => {
        throw new NonRetryableError('no');
      }),
    ).rejects.toThrow();
    expect(
      of('onceAttempt').map(({ phase, attempt, outcome }) => [phase, attempt, outcome]),
    ).toEqual([
      ['began', 1, undefined],
      ['ended', 1, 'completed'],
      ['began', 1, undefined],
      ['ended', 1, 'final'],
    ]);
  });
});

describe('an outage', () => {
  it('is seen in acquire, renew, release and requests, as jeopardy and as a loss', async () => {
    const backend = await oneRedis();
    const { redis } = backend.options as { readonly redis: string };
    const locks = new LockService({ redis, nodeTimeout: '100ms' });
    const { ends, of } = listen();
    const lock = await locks.acquire('key', { ttl: '2s' });
    const another = await locks.acquire('other', { ttl: '30s' });
    await backend.close();
    await expect(locks.tryAcquire('third')).rejects.toThrow();
    await expect(another.release()).rejects.toThrow();
    await eventually(() => of('lost').length === 1, { withinMs: 10_000 });
    expect(ends.acquire?.at(-1)).toMatchObject({ outcome: 'unavailable' });
    expect(ends.release?.at(-1)).toMatchObject({ outcome: 'unavailable' });
    expect(ends.renew?.[0]).toMatchObject({ leases: [{ outcome: 'unavailable' }] });
    expect(ends.request?.at(-1)).toMatchObject({ outcome: 'connection' });
    expect(of('unavailable').map(({ operation }) => operation)).toEqual(['acquire', 'release']);
    expect(of('jeopardy')).toEqual([expect.objectContaining({ keys: ['key'] })]);
    expect(of('lost')).toEqual([expect.objectContaining({ reason: 'store-unavailable' })]);
    expect(lock.isHeld).toBe(false);
    await locks.shutdown(0);
  }, 20_000);
});
