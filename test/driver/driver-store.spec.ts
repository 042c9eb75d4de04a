import { Logger } from '@nestjs/common';
import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  Leader,
  LockConfigurationError,
  LockLostError,
  LockModule,
  LockNotAcquiredError,
  LockService,
  LockStoreUnavailableError,
  RunOnce,
  WithLock,
  type DriverLockService,
  type LockDriver,
  type LockEvents,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import { LockAdmin } from 'nestjs-holdfast/admin';
import { closeApps, startApp } from '../nest/module/start-app.js';
import { VirtualRuntime, settled } from '../support/virtual-runtime.js';
import { MemoryDriver, type Leases } from './memory-driver.js';

interface Call {
  readonly atMs: number;
  /** The operation and the key: `acquire lock:a`. */
  readonly what: string;
  readonly ttlMs?: number;
}

/** A driver that records what it is asked, and fails as the test says. */
class RecordingDriver implements LockDriver {
  readonly calls: Call[] = [];
  /** In place of the reply to an operation: `fails.acquire = () => { throw … }`. */
  fails: Partial<Record<keyof LockDriver, (key: string) => unknown>> = {};
  readonly #clock: VirtualRuntime;
  readonly #driver: MemoryDriver;

  constructor(clock: VirtualRuntime, leases: Leases) {
    this.#clock = clock;
    this.#driver = new MemoryDriver(leases, () => clock.now().monotonicMs);
  }

  /** What was asked since the last look. */
  get asked(): readonly string[] {
    return this.calls.splice(0).map(({ what }) => what);
  }

  acquire(key: string, token: string, ttlMs: number): ReturnType<LockDriver['acquire']> {
    return this.#asked('acquire', key, ttlMs, () => this.#driver.acquire(key, token, ttlMs));
  }

  extend(key: string, token: string, ttlMs: number): ReturnType<LockDriver['extend']> {
    return this.#asked('extend', key, ttlMs, () => this.#driver.extend(key, token, ttlMs));
  }

  release(key: string, token: string): ReturnType<LockDriver['release']> {
    return this.#asked('release', key, undefined, () => this.#driver.release(key, token));
  }

  #asked<T>(
    operation: keyof LockDriver,
    key: string,
    ttlMs: number | undefined,
    reply: () => Promise<T>,
  ): Promise<T> {
    const atMs = this.#clock.now().monotonicMs;
    this.calls.push({ atMs, what: `${operation} ${key}`, ...(ttlMs !== undefined && { ttlMs }) });
    const fails = this.fails[operation];
    return fails === undefined ? reply() : (fails(key) as Promise<T>);
  }
}

const down = (): never => {
  throw new Error('connect ECONNREFUSED postgres://app:secret@db/locks');
};

/** Never settles. */
const silent = () => new Promise(() => undefined);

/** Two services of two processes, each with a driver of its own, on one database. */
function twoServices(options: Omit<LockModuleOptions, 'redis' | 'store'> = {}) {
  const clock = new VirtualRuntime();
  const leases: Leases = new Map();
  const [driver, otherDriver] = [
    new RecordingDriver(clock, leases),
    new RecordingDriver(clock, leases),
  ];
  const serviceOn = (store: LockDriver) =>
    new LockService(
      { ttl: 30_000, wait: 10_000, clockDrift: 0, ...options, store },
      { runtime: clock },
    ) as unknown as DriverLockService;
  return {
    ...{ clock, leases, driver, otherDriver },
    locks: serviceOn(driver),
    others: serviceOn(otherDriver),
  };
}

const errorOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => new Error('It did not reject.'),
    (error: unknown) => error,
  );

beforeAll(() => {
  Logger.overrideLogger(false);
});

afterEach(closeApps);

describe('a lock of a driver', () => {
  it('is held by one caller at a time, under the keyPrefix, and free after the release', async () => {
    const { locks, others, driver } = twoServices({ keyPrefix: 'app:' });
    const lock = await locks.acquire('a');
    expect(await others.tryAcquire('a')).toBeNull();
    expect(await others.tryRun('a', () => 'ran')).toEqual({
      acquired: false,
      retryAfterMs: 30_000,
    });
    expect(await lock.release()).toBe(true);
    expect(await others.tryRun('a', () => 'ran')).toEqual({ acquired: true, value: 'ran' });
    expect(driver.asked).toEqual(['acquire app:a', 'release app:a']);
  });

  it('has no fencing token, and neither have its events and its loss', async () => {
    const { locks, leases } = twoServices({ autoExtend: false });
    const events: unknown[] = [];
    locks.on('acquired', ({ fencingToken }) => events.push(fencingToken));
    locks.on('lost', ({ fencingToken }) => events.push(fencingToken));
    const lock = await locks.acquire('a');
    const token: undefined = lock.fencingToken;
    expect(token).toBeUndefined();
    expect(await locks.run('b', (inner) => inner.fencingToken)).toBeUndefined();
    leases.clear();
    const loss = await errorOf(lock.extend());
    expect(loss).toBeInstanceOf(LockLostError);
    expect(loss).toMatchObject({ reason: 'released-elsewhere', fencingToken: undefined });
    expect(events).toStrictEqual([undefined, undefined, undefined]);
  });

  it('is waited for by asking again at random times, until it is free', async () => {
    const { locks, others, otherDriver, clock } = twoServices();
    const lock = await locks.acquire('a');
    const waiting = others.acquire('a');
    await clock.advance(5_000);
    const times = otherDriver.calls.map(({ atMs }) => atMs);
    const pauses = times.slice(1).map((atMs, index) => atMs - (times[index] ?? 0));
    expect(pauses.length).toBeGreaterThan(5_000 / 320);
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(95);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(320);
    expect(new Set(pauses).size).toBeGreaterThan(5);
    await lock.release();
    await clock.advance(320);
    expect((await waiting).isHeld).toBe(true);
  });

  it('is passed to a waiting caller of the same process at once', async () => {
    const { locks, clock } = twoServices();
    const lock = await locks.acquire('a');
    const waiting = locks.acquire('a');
    await clock.advance(1_000);
    await lock.release();
    await settled();
    expect((await waiting).isHeld).toBe(true);
  });

  it('is free when the lease of a holder that died is over', async () => {
    const { locks, others, clock } = twoServices({ autoExtend: false, ttl: 1_000 });
    await locks.acquire('a');
    const waiting = others.acquire('a', { wait: 2_000 });
    await clock.advance(1_050);
    expect((await waiting).isHeld).toBe(true);
  });

  it('is refused when the wait is over', async () => {
    const { locks, others, clock } = twoServices();
    await locks.acquire('a');
    const refusal = errorOf(others.acquire('a', { wait: 1_000 }));
    await clock.advance(1_100);
    expect(await refusal).toBeInstanceOf(LockNotAcquiredError);
  });

  it('is renewed while it is held', async () => {
    const { locks, driver, clock } = twoServices({ ttl: 900 });
    const lock = await locks.acquire('a');
    await clock.advance(5_000);
    expect(lock.isHeld).toBe(true);
    const renewals = driver.calls.filter(({ what }) => what === 'extend lock:a');
    expect(renewals.length).toBeGreaterThanOrEqual(15);
    expect(renewals).toContainEqual(expect.objectContaining({ ttlMs: 900 }));
  });

  it('is lost when the driver says so, and when it does not reply for as long as the lease is valid', async () => {
    const { locks, driver, leases, clock } = twoServices({ ttl: 900 });
    const lost: LockEvents<undefined>['lost']['reason'][] = [];
    locks.on('lost', ({ reason }) => lost.push(reason));
    const first = await locks.acquire('a');
    leases.set('lock:a', { token: 'of another', untilMs: Infinity });
    await clock.advance(400);
    expect(first.signal.aborted).toBe(true);
    const second = await locks.acquire('b');
    driver.fails.extend = down;
    await clock.advance(1_000);
    expect(second.signal.aborted).toBe(true);
    expect(lost).toEqual(['released-elsewhere', 'store-unavailable']);
  });

  it('is renewed while the driver does not reply for another one', async () => {
    const { locks, driver, clock } = twoServices({ ttl: 150 });
    driver.fails.extend = (key) =>
      key === 'lock:a' ? silent() : Promise.resolve({ status: 'extended' });
    const [a, b] = await Promise.all([locks.acquire('a'), locks.acquire('b')]);
    await clock.advance(300);
    expect([a.isHeld, b.isHeld]).toEqual([false, true]);
  });

  it('says at its release that it was lost before', async () => {
    const { locks, leases } = twoServices({ autoExtend: false });
    const lock = await locks.acquire(['a', 'b']);
    leases.delete('lock:b');
    expect(await lock.release()).toBe(false);
    expect([...leases.keys()]).toEqual([]);
  });

  it('is refused with no time to wait for where the lease of the holder is about to end', async () => {
    const { locks, driver } = twoServices();
    driver.fails.acquire = () => Promise.resolve({ status: 'held', remainingMs: 0 });
    expect(await locks.tryAcquire('a')).toBeNull();
    expect(await locks.tryRun('a', () => 'ran')).toEqual({ acquired: false, retryAfterMs: 0 });
  });

  it('stays taken for "minHold", and after "on-expiry" for its TTL', async () => {
    const { locks, others, driver, clock } = twoServices();
    await locks.run('a', { minHold: 5_000 }, () => undefined);
    await locks.run('b', { release: 'on-expiry' }, () => undefined);
    expect(driver.calls.map(({ what, ttlMs }) => [what, ttlMs])).toEqual([
      ['acquire lock:a', 30_000],
      ['extend lock:a', 5_000],
      ['acquire lock:b', 30_000],
      ['extend lock:b', 30_000],
    ]);
    expect(await others.tryAcquire('a')).toBeNull();
    await clock.advance(5_001);
    expect(await others.tryAcquire('a')).not.toBeNull();
    expect(await others.tryAcquire('b')).toBeNull();
  });
});

describe('several keys of a driver', () => {
  it('are taken one after the other, in the same order by every process, and released', async () => {
    const { locks, driver } = twoServices();
    await locks.run(['b', 'c', 'a'], () => undefined);
    expect(driver.asked).toEqual([
      ...['acquire lock:a', 'acquire lock:b', 'acquire lock:c'],
      ...['release lock:a', 'release lock:b', 'release lock:c'],
    ]);
  });

  it('are given back when one of them is held, and a waiting call asks for that one first', async () => {
    const { locks, others, driver, clock } = twoServices();
    const busy = await others.acquire('c');
    const waiting = locks.acquire(['a', 'b', 'c']);
    await settled();
    expect(driver.asked).toEqual([
      ...['acquire lock:a', 'acquire lock:b', 'acquire lock:c'],
      ...['release lock:b', 'release lock:a'],
    ]);
    const earlier = await others.tryAcquire(['a', 'b']);
    expect(earlier?.isHeld).toBe(true);
    await clock.advance(320);
    expect(new Set(driver.asked)).toEqual(new Set(['acquire lock:c']));
    await busy.release();
    await clock.advance(320);
    // It does not keep the key that it waited for while it waits for another one.
    expect(driver.asked.join()).toContain('acquire lock:c,acquire lock:a,release lock:c');
    await earlier?.release();
    await clock.advance(320);
    expect((await waiting).isHeld).toBe(true);
  });

  it('are an outage, and no refusal, when one of them is held and another cannot be given back', async () => {
    const { locks, others, driver, leases, clock } = twoServices();
    await others.acquire('b');
    driver.fails.release = down;
    expect(await errorOf(locks.acquire(['a', 'b'], { wait: 0 }))).toBeInstanceOf(
      LockStoreUnavailableError,
    );
    expect(leases.has('lock:a')).toBe(true);
    driver.fails = {};
    await clock.advance(1_000);
    expect([...leases.keys()]).toEqual(['lock:b']);
  });

  it('are all removed when the driver fails at one of them', async () => {
    const { locks, others, driver, clock } = twoServices();
    driver.fails.acquire = (key) => (key === 'lock:b' ? down() : { status: 'acquired' });
    const failure = await errorOf(locks.acquire(['a', 'b'], { wait: 0 }));
    expect(failure).toBeInstanceOf(LockStoreUnavailableError);
    await clock.advance(10);
    expect(driver.asked).toEqual([
      ...['acquire lock:a', 'acquire lock:b'],
      ...['release lock:a', 'release lock:b'],
    ]);
    expect(await others.tryAcquire(['a', 'b'])).not.toBeNull();
  });
});

describe('a driver that fails', () => {
  it.each([
    ['throws', down],
    ['does not reply', silent],
  ])('at the release of one key releases the others: it %s', async (_, fails) => {
    const { locks, driver, leases, clock } = twoServices();
    driver.fails.release = (key) => {
      if (key === 'lock:a') return fails();
      leases.delete(key);
      return Promise.resolve({ status: 'released' });
    };
    const done = locks.run(['a', 'b', 'c'], () => 'done');
    await clock.advance(10);
    expect([...leases.keys()]).toEqual(['lock:a']);
    await clock.advance(5_000);
    expect(await done).toBe('done');
  });

  it('after it has carried out a release takes no lock from its caller: the second reply is no loss', async () => {
    const { locks, driver, leases } = twoServices();
    const lock = await locks.acquire('a');
    driver.fails.release = (key) => {
      leases.delete(key);
      driver.fails = {};
      return down();
    };
    expect(await lock.release()).toBe(true);
    expect(driver.asked).toEqual(['acquire lock:a', 'release lock:a', 'release lock:a']);
  });

  it('has "nodeTimeout" to reply, however little is left of "minHold"', async () => {
    const { locks, driver, leases, clock } = twoServices();
    const lock = await locks.acquire('a', { minHold: 1_000 });
    await clock.advance(900);
    driver.fails.extend = () =>
      new Promise((resolve) => clock.setTimer(() => resolve({ status: 'extended' }), 300));
    const released = lock.release();
    await clock.advance(320);
    expect(await released).toBe(true);
    expect([...leases.keys()]).toEqual(['lock:a']);
    expect(driver.asked).toEqual(['acquire lock:a', 'extend lock:a']);
  });

  it('grants nothing if its replies to several keys take longer than the TTL', async () => {
    const { locks, driver, leases, clock } = twoServices({ ttl: 300 });
    driver.fails.acquire = () =>
      new Promise((resolve) => clock.setTimer(() => resolve({ status: 'acquired' }), 200));
    const failure = errorOf(locks.acquire(['a', 'b'], { wait: 0 }));
    await clock.advance(450);
    expect((await failure) as Error).toMatchObject({
      nodes: [
        {
          node: 'driver',
          kind: 'timeout',
          message: 'acquire() took 400 ms for 2 keys, and the TTL is 300 ms',
        },
      ],
    });
    expect(leases.size).toBe(0);
  });

  it('makes a call reject with what it has thrown, without credentials', async () => {
    const { locks, driver } = twoServices();
    driver.fails.acquire = down;
    const failure = await errorOf(locks.tryAcquire('a'));
    expect(failure).toBeInstanceOf(LockStoreUnavailableError);
    expect(failure).toMatchObject({
      nodes: [
        { node: 'driver', kind: 'error', message: 'connect ECONNREFUSED postgres://***@db/locks' },
      ],
      detail:
        'Could not acquire "a": the lock store is not available (driver (error): connect ECONNREFUSED postgres://***@db/locks). ' +
        'No work ran without the lock. Check the database of the driver and try again.',
    });
  });

  it('is asked again by calls that wait, until it replies', async () => {
    const { locks, driver, clock } = twoServices();
    driver.fails.acquire = () => Promise.reject(new Error('the pool is empty'));
    const waiting = locks.acquire('a');
    await clock.advance(3_000);
    driver.fails = {};
    await clock.advance(1_100);
    expect((await waiting).isHeld).toBe(true);
  });

  it('has "nodeTimeout" to reply, and what it does later is removed', async () => {
    const { locks, driver, clock } = twoServices({ nodeTimeout: 200 });
    driver.fails.acquire = silent;
    const failure = errorOf(locks.acquire('a', { wait: 0 }));
    await clock.advance(230);
    expect(await failure).toMatchObject({
      nodes: [
        { node: 'driver', kind: 'timeout', message: 'acquire() did not settle within 200 ms' },
      ],
    });
    expect(driver.asked).toEqual(['acquire lock:a', 'release lock:a']);
    await clock.advance(600);
    expect(driver.asked).toEqual(['release lock:a']);
  });

  it.each<[keyof LockDriver, unknown, string]>([
    ['acquire', undefined, 'acquire() must not resolve with the status undefined'],
    ['acquire', true, 'acquire() must not resolve with the status undefined'],
    ['acquire', { status: 'granted' }, 'acquire() must not resolve with the status "granted"'],
    [
      'acquire',
      { status: 'held', remainingMs: '12' },
      'acquire() must not resolve with remainingMs "12": give a number of ms',
    ],
    [
      'acquire',
      { status: 'held', remainingMs: Number.NaN },
      'acquire() must not resolve with remainingMs NaN: give a number of ms',
    ],
    ['release', { status: 'lost' }, 'release() must not resolve with the status "lost"'],
    ['extend', { status: 'held' }, 'extend() must not resolve with the status "held"'],
  ])(
    'HF-22 fails calls at once if its %s() resolves with %j',
    async (operation, reply, message) => {
      const { locks, driver, clock } = twoServices();
      driver.fails[operation] = () => Promise.resolve(reply);
      const failure = errorOf(locks.acquire('a').then((lock) => lock[operation as 'extend']()));
      await clock.advance(10);
      expect(await failure).toMatchObject({ nodes: [{ kind: 'error', message }] });
    },
  );

  it('makes the service unhealthy', async () => {
    const { locks, driver, clock, leases } = twoServices();
    const node = { node: 'driver', quarantinedForMs: 0 };
    const well = { hasQuorum: true, quorum: 1 };
    expect(await locks.health()).toEqual({
      ...well,
      nodes: [{ ...node, reachable: true, latencyMs: 0 }],
    });
    expect([...leases]).toEqual([]);
    leases.set('lock:{health}', { token: 'of another', untilMs: Infinity });
    expect(await locks.health()).toMatchObject(well);
    driver.fails.acquire = silent;
    const health = locks.health();
    await clock.advance(1_100);
    const problem = 'acquire() did not settle within 1000 ms';
    expect(await health).toEqual({
      hasQuorum: false,
      quorum: 1,
      nodes: [{ ...node, reachable: false, problem }],
    });
  });
});

describe('what needs more than a driver', () => {
  const sentence = (what: string): string =>
    `${what} needs one Redis, and option "store" is a driver, whose locks are exclusive and have no fencing tokens. Use a second, named service ` +
    "on one Redis: LockModule.forRoot({ name: 'single', redis: 'redis://…' }), chosen by the decorator's option \"instance\" or by " +
    "@InjectLockService('single').";

  it.each<[string, (locks: DriverLockService) => unknown]>([
    ['Option "mode"', (locks) => locks.acquire('a', { mode: 'shared' })],
    ['Option "limit"', (locks) => locks.run('a', { limit: 2 }, () => undefined)],
    ['Option "limit"', (locks) => locks.limiter('a', { limit: 2 })],
    ['Work that is to be done once', (locks) => locks.runOnce('a', () => undefined)],
    ['A leader', (locks) => locks.lead('a', { onElected: () => undefined })],
    ['getLeader()', (locks) => locks.getLeader('a')],
    ['inspect()', (locks) => locks.inspect('a')],
    ['forceRelease()', (locks) => locks.forceRelease('a')],
    ['LockAdmin', (locks) => new LockAdmin(locks as unknown as LockService)],
    ['detach()', async (locks) => (await locks.acquire('a')).detach()],
    ['guarded()', async (locks) => (await locks.acquire('a')).guarded([['SET', 'a', 1]])],
  ])('is refused: %s', async (what, ask) => {
    const { locks } = twoServices();
    const refusal = await errorOf((async () => ask(locks))());
    expect(refusal).toBeInstanceOf(LockConfigurationError);
    expect((refusal as Error).message).toBe(sentence(what));
  });

  it('is refused: attach(), whatever the text is', async () => {
    const elsewhere = new LockService({ store: 'memory' });
    const text = await (await elsewhere.acquire('a')).detach();
    const { locks } = twoServices();
    for (const each of [text, 'no such text'])
      expect(await errorOf(locks.attach(each))).toMatchObject({ message: sentence('attach()') });
    await elsewhere.shutdown(0);
  });

  it.each(['credentials', 'restartGuard', 'replicas'] as const)('is refused: %s', (option) => {
    const given = {
      credentials: () => Promise.resolve({ password: 'x' }),
      restartGuard: { maxTtl: '1m' },
      replicas: { ack: 1 },
    } as const;
    const store = new MemoryDriver();
    expect(() => new LockService({ store, [option]: given[option] })).toThrow(
      `Option "${option}" is for locks in Redis: give "redis".`,
    );
  });

  it('is refused when the application starts, if a decorator asks for it', async () => {
    class Once {
      @RunOnce('work')
      work(): Promise<undefined> {
        return Promise.resolve(undefined);
      }
    }
    class Leads {
      @Leader('leader')
      lead(): void {}
    }
    class Reads {
      @WithLock('a', { mode: 'shared' })
      read(): Promise<void> {
        return Promise.resolve();
      }
    }
    const appWith = (provider: new () => object) =>
      startApp({
        imports: [LockModule.forRoot({ store: new MemoryDriver() })],
        providers: [provider],
      });
    for (const [provider, what] of [
      [Once, '@RunOnce on Once.work: Work that is to be done once'],
      [Leads, 'A leader'],
      [Reads, '@WithLock on Reads.read: Option "mode"'],
    ] as const)
      expect(await errorOf(appWith(provider))).toMatchObject({ message: sentence(what) });
  });
});

describe('LockModule.forRoot({ store: driver })', () => {
  it('makes @WithLock work', async () => {
    class Orders {
      @WithLock('order:<id>')
      async pay(id: string): Promise<string> {
        return `paid ${id}`;
      }
    }
    const leases: Leases = new Map();
    const { app } = await startApp({
      imports: [LockModule.forRoot({ store: new MemoryDriver(leases) })],
      providers: [Orders],
    });
    const orders = app.get(Orders);
    expect(await orders.pay('1')).toBe('paid 1');
    leases.set('lock:order:1', { token: 'of another', untilMs: Infinity });
    await expect(orders.pay('1')).rejects.toThrow(LockNotAcquiredError);
  });

  it.each<[unknown, string]>([
    [null, ''],
    [7, ''],
    [{}, ''],
    [{ acquire: () => undefined, extend: () => undefined }, ' (it has no release)'],
  ])('refuses what is no driver: %p', (store, lacks) => {
    expect(() => new LockService({ store: store as LockDriver })).toThrow(
      `Option "store" must be 'memory' or a LockDriver, an object with the methods acquire, extend, release${lacks}, received `,
    );
  });
});
