import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { setMaxListeners } from 'node:events';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import type { AcquireOptions, Lock, LockService } from 'nestjs-holdfast';
import { subtractCommandStats, sumCommandStats } from '../../support/command-stats.js';
import { deferred, eventually } from '../../support/eventually.js';
import { watchHandles } from '../../support/no-leaks.js';
import { watchRejections } from '../../support/scripted-service.js';
import { share } from '../../support/soak.js';
import {
  type CallingProcess,
  type Keys,
  ORDERS,
  type Order,
  SERVED,
  SeveralKeysStage,
  STORES,
  type StoreName,
} from './several-keys-stage.js';

/** How long it is measured who gets a key. */
const LENGTH_MS = share(6_000, 20_000);

const LIMIT_MS = 120_000;

/** Jobs that hold their keys for long have held them for so long when others come. */
const AGE_MS = 1_200;

const BETWEEN_TRIES_MS = 8;

/** What the machine may add where something is to happen at once. */
const AT_ONCE_MS = 500;

const COUNTS = [1, 3, 10] as const;

const handles = watchHandles();
const rejections = watchRejections();
let stage: SeveralKeysStage;

beforeAll(async () => {
  Logger.overrideLogger(false);
  stage = await SeveralKeysStage.open();
}, LIMIT_MS);

afterAll(async () => {
  await stage.close();
  await handles.expectNoneOpen();
  await rejections.expectNone();
}, LIMIT_MS);

const release = (lock: Lock): Promise<boolean> => lock.release();
const ignore = (): undefined => undefined;
const percent = (part: number): string => `${(100 * part).toFixed(1)} %`;

/** Of all tries to have a key while something lasts, the part that was granted. A granted lock is released at once. */
async function partGranted(
  locks: LockService,
  key: string,
  { lengthMs, mode }: { readonly lengthMs: number; readonly mode: 'exclusive' | 'shared' },
): Promise<number> {
  let [tries, granted] = [0, 0];
  for (const until = performance.now() + lengthMs; performance.now() < until; tries += 1) {
    const lock = await locks.tryAcquire(key, { mode });
    if (lock !== null) granted += 1;
    await lock?.release();
    await sleep(BETWEEN_TRIES_MS);
  }
  return granted / tries;
}

/** How many ms a call took, or what kept it from being granted. */
async function took(call: () => Promise<unknown>): Promise<number | string> {
  const since = performance.now();
  return call().then(
    () => performance.now() - since,
    (error: unknown) => (error as Error).name,
  );
}

const isLate = (result: number | string): boolean =>
  typeof result === 'string' || result > AT_ONCE_MS;

/** What is expected to be empty, so that a failure prints what is wrong. */
const those = <T>(results: ReadonlyMap<string, T>, areWrong: (result: T) => boolean) =>
  Object.fromEntries([...results].filter(([, result]) => areWrong(result)));

async function inAllCases<T, Result>(
  cases: readonly T[],
  nameOf: (each: T) => string,
  play: (each: T) => Promise<Result>,
): Promise<ReadonlyMap<string, Result>> {
  return new Map(
    await Promise.all(cases.map(async (each) => [nameOf(each), await play(each)] as const)),
  );
}

/** The machine may be late once. */
async function unlessAgain<Result>(
  isWrong: (result: Result) => boolean,
  play: () => Promise<Result>,
): Promise<Result> {
  const result = await play();
  return isWrong(result) ? play() : result;
}

interface Services {
  /** Of those who hold a key for long. */
  readonly jobs: LockService;
  readonly waiters: readonly LockService[];
  /** Of those who want the hot key alone. */
  readonly others: LockService;
}

async function servicesAt(store: StoreName): Promise<Services> {
  const [jobs, others, ...waiters] = await Promise.all(
    Array.from({ length: 5 }, () => stage.newService(store)),
  );
  return { jobs: jobs!, others: others!, waiters };
}

interface Contention {
  readonly order: Order;
  readonly count: number;
  readonly mode: 'exclusive' | 'shared';
}

const CONTENTIONS: readonly Contention[] = ORDERS.flatMap((order) => [
  ...COUNTS.map((count) => ({ order, count, mode: 'exclusive' }) as const),
  ...[1, 3].map((count) => ({ order, count, mode: 'shared' }) as const),
]);

const nameOfContention = ({ order, count }: Contention): string =>
  `${order}, waiters: ${String(count)}`;

describe('callers who wait for several keys, of which one is free', () => {
  interface Measured extends Contention {
    readonly store: StoreName;
    readonly part: number;
    readonly tookMs: number | string;
  }

  let all: readonly Measured[] = [];

  const results = <Result>(
    store: StoreName,
    mode: Contention['mode'],
    of: (measured: Measured) => Result,
  ): ReadonlyMap<string, Result> =>
    new Map(
      all
        .filter((each) => each.store === store && each.mode === mode)
        .map((each) => [nameOfContention(each), of(each)]),
    );

  /** From the moment when the first waiter comes. */
  async function measure(
    { waiters, others }: Services,
    { mode }: Contention,
    { hot, colds }: Keys,
  ): Promise<Pick<Measured, 'part' | 'tookMs'>> {
    const leaving = new AbortController();
    const { signal } = leaving;
    const waits = colds.map((cold, index) =>
      waiters[index % waiters.length]!.acquire([hot, cold], { mode, wait: '1m', signal }).then(
        release,
        ignore,
      ),
    );
    const part = await partGranted(others, hot, { lengthMs: LENGTH_MS, mode });
    const acquire = (): Promise<unknown> =>
      others.acquire(hot, { mode, wait: '20s', signal: AbortSignal.timeout(2_000) }).then(release);
    const tookMs = await took(acquire);
    leaving.abort();
    await Promise.all(waits);
    return { part, tookMs };
  }

  async function measureAll(store: StoreName): Promise<readonly Measured[]> {
    const services = await servicesAt(store);
    const cases = CONTENTIONS.map((contention) => ({
      contention,
      keys: stage.newKeys(contention.order, contention.count),
    }));
    const colds = cases.flatMap(({ keys }) => keys.colds);
    const held = await Promise.all(colds.map((cold) => services.jobs.acquire(cold)));
    await sleep(AGE_MS);
    const measured = await Promise.all(
      cases.map(async ({ contention, keys }) => ({
        ...{ store, ...contention },
        ...(await measure(services, contention, keys)),
      })),
    );
    await Promise.all(held.map(release));
    return measured;
  }

  beforeAll(async () => {
    all = (await Promise.all(STORES.map(measureAll))).flat();
  }, LIMIT_MS);

  it.each(STORES)(
    'HF-51 leave it to at least 95 % of all who try to have it, while the others are held: %s',
    (store) => {
      const parts = results(store, 'exclusive', ({ part }) => part);
      expect(those(parts, (part) => part < 0.95)).toEqual({});
    },
  );

  it.each(STORES)('HF-51 and would read leave it to all who would read it: %s', (store) => {
    const parts = results(store, 'shared', ({ part }) => part);
    expect(those(parts, (part) => part < 1)).toEqual({});
  });

  it.each(STORES)('HF-51 leave it at once to those who would wait for it: %s', (store) => {
    const took = results(store, 'exclusive', ({ tookMs }) => tookMs);
    expect(those(took, isLate)).toEqual({});
  });
});

describe('a section that holds one of several keys that others wait for', () => {
  interface Circle {
    readonly store: StoreName;
    readonly order: Order;
    readonly callers: number;
    readonly wait: AcquireOptions['wait'];
    /** For so long they have waited when the section asks. */
    readonly afterMs: number;
  }

  const circlesAt = (stores: readonly StoreName[]): readonly Circle[] =>
    stores.flatMap((store) =>
      ORDERS.flatMap((order) =>
        [1, 2, 3].flatMap((callers) =>
          (['20s', 'forever'] as const).flatMap((wait) =>
            [0, AGE_MS].map((afterMs) => ({ store, order, callers, wait, afterMs })),
          ),
        ),
      ),
    );

  const nameOfCircle = ({ store, order, callers, wait, afterMs }: Circle): string =>
    `${store}, ${order}, callers: ${String(callers)}, wait: ${String(wait)}, after ${String(afterMs)} ms`;

  const services = new Map<StoreName, LockService>();
  let process: CallingProcess;

  beforeAll(async () => {
    for (const store of STORES) services.set(store, await stage.newService(store));
    process = stage.newProcess();
  });

  /** Resolves when they wait, with how their calls end. */
  type StartCallers = (
    circle: Circle,
    keys: readonly string[],
  ) => Promise<() => Promise<readonly string[]>>;

  const inThisProcess: StartCallers = async ({ store, callers, wait }, keys) => {
    const locks = services.get(store)!;
    const waiting = deferred();
    let count = 0;
    const stop = locks.on('waiting', (event) => {
      if (event.keys.every((key) => keys.includes(key)) && (count += 1) === callers)
        waiting.resolve();
    });
    const calls = Array.from({ length: callers }, () =>
      locks.run(keys, { wait }, () => 'granted').catch((error: unknown) => (error as Error).name),
    );
    await waiting.promise;
    stop();
    return () => Promise.all(calls);
  };

  const inAnotherProcess: StartCallers = async ({ store, callers, wait }, keys) => {
    for (let index = 0; index < callers; index += 1) await process.call(store, keys, wait);
    const ends = async (): Promise<readonly string[] | false> => {
      const ended = await process.ends(keys);
      return ended.length === callers && ended;
    };
    return () => eventually(ends, { withinMs: 20_000 });
  };

  async function play(circle: Circle, startCallers: StartCallers): Promise<number | string> {
    const locks = services.get(circle.store)!;
    const { hot, colds } = stage.newKeys(circle.order, 1);
    const held = colds[0]!;
    const [isHeld, mayAsk] = [deferred(), deferred()];
    const section = locks.run(held, async () => {
      isHeld.resolve();
      await mayAsk.promise;
      return took(() =>
        locks.run(hot, { wait: circle.wait, signal: AbortSignal.timeout(4_000) }, ignore),
      );
    });
    await isHeld.promise;
    const ends = await startCallers(circle, [hot, held].sort());
    await sleep(circle.afterMs);
    mayAsk.resolve();
    const tookMs = await section;
    const others = new Set(await ends());
    others.delete('granted');
    return others.size === 0 ? tookMs : [...others].join(', ');
  }

  it.each([
    ['one process', STORES, inThisProcess],
    ['two processes', SERVED, inAnotherProcess],
  ] as const)(
    'HF-51 has the free one at once, also when nobody of them ever gives up: %s',
    async (_where, stores, startCallers) => {
      const results = await inAllCases(circlesAt(stores), nameOfCircle, (circle) =>
        unlessAgain(isLate, () => play(circle, startCallers)),
      );
      expect(those(results, isLate)).toEqual({});
    },
    LIMIT_MS,
  );
});

describe('a process that is frozen in the middle of a call for several keys', () => {
  /** What each of them costs at the most. */
  const EACH_MS = 2_000;

  /** When a free key has been had for so long, it stays so. */
  const CALM_MS = 1_300;

  let processes: readonly CallingProcess[];

  beforeAll(() => {
    processes = [1, 2, 3].map(() => stage.newProcess());
  });

  /** For how long the hot key was kept from others when all of them were frozen. */
  async function keptMs(
    store: StoreName,
    order: Order,
    frozen: readonly CallingProcess[],
  ): Promise<number> {
    const { hot, colds } = stage.newKeys(order, frozen.length);
    const locks = await stage.newService(store);
    const isFree = async (): Promise<boolean> => {
      const lock = await locks.tryAcquire(hot);
      await lock?.release();
      return lock !== null;
    };
    // They come right after the jobs have begun: they may hold the hot key for a moment.
    const held = await Promise.all(colds.map((cold) => locks.acquire(cold)));
    await Promise.all(frozen.map((process, index) => process.call(store, [hot, colds[index]!])));
    for (const until = performance.now() + 100; performance.now() < until && (await isFree());)
      await sleep(1);
    for (const process of frozen) process.freeze();
    try {
      const since = performance.now();
      let refusedAt = since;
      while (performance.now() - refusedAt < CALM_MS && refusedAt - since < 10 * EACH_MS) {
        if (!(await isFree())) refusedAt = performance.now();
        await sleep(5);
      }
      return refusedAt - since;
    } finally {
      for (const process of frozen) process.thaw();
      await Promise.all(held.map(release));
      for (const [index, process] of frozen.entries())
        await eventually(async () => (await process.ends([hot, colds[index]!])).length === 1, {
          withinMs: 20_000,
        });
    }
  }

  it.each(SERVED)(
    'HF-51 costs a free key about two seconds at the most: %s',
    async (store) => {
      const [one, other, third] = processes;
      const [alone, both] = await Promise.all([
        keptMs(store, 'hot key first', [one!]),
        keptMs(store, 'hot key last', [other!, third!]),
      ]);
      expect(alone).toBeLessThan(EACH_MS + AT_ONCE_MS);
      expect(both).toBeLessThan(2 * EACH_MS + AT_ONCE_MS);
    },
    LIMIT_MS,
  );
});

describe.each(STORES)('a call for several keys: %s', (store) => {
  let one: LockService;
  let other: LockService;

  beforeAll(async () => {
    [one, other] = await Promise.all([stage.newService(store), stage.newService(store)]);
  });

  const ENDS = {
    'does not wait': { wait: 0 },
    'times out': { wait: 250 },
    'is aborted': { wait: '20s' },
    'fails with its service': { wait: '20s' },
    'wants to hold for a time': { wait: 250, minHold: '10s' },
    'wants to hold until its lease is over': { wait: 250, release: 'on-expiry' },
  } as const satisfies Record<string, AcquireOptions>;

  type End = keyof typeof ENDS;

  it('HF-51 that has not got them keeps none of them, and no place in line', async () => {
    const cases = ORDERS.flatMap((order) =>
      (Object.keys(ENDS) as End[]).flatMap((end) =>
        [0, 300].map((ageMs) => ({ order, end, ageMs })),
      ),
    );
    const isLeft = (what: string): boolean => what !== '';
    const play = async ({ order, end, ageMs }: (typeof cases)[number]): Promise<string> => {
      const keys = stage.newKeys(order, 1);
      const {
        hot,
        colds: [cold = ''],
      } = keys;
      const job = await other.acquire(cold);
      await sleep(ageMs);
      const caller = end === 'fails with its service' ? await stage.newService(store) : one;
      const signal = end === 'is aborted' ? AbortSignal.timeout(50) : undefined;
      const call = caller.acquire([hot, cold], { ...ENDS[end], signal }).then(
        () => 'was granted',
        () => 'was not granted',
      );
      if (end === 'fails with its service') {
        await sleep(50);
        await caller.shutdown(0);
      }
      if ((await call) === 'was granted') return 'was granted';
      const tookMs = await took(() => other.acquire(hot, { wait: AT_ONCE_MS }).then(release));
      if (isLate(tookMs)) return `the free key: ${String(tookMs)}`;
      await job.release();
      const both = await took(() => other.acquire([hot, cold], { wait: AT_ONCE_MS }).then(release));
      if (isLate(both)) return `both keys: ${String(both)}`;
      const isClean = async (): Promise<boolean> => (await stage.leftOf(store, keys)).length === 0;
      await eventually(isClean, { withinMs: 2 * AT_ONCE_MS }).catch(ignore);
      return (await stage.leftOf(store, keys)).join(' ');
    };
    const left = await inAllCases(
      cases,
      ({ order, end, ageMs }) => `${end}, ${order}, after ${String(ageMs)} ms`,
      (each) => unlessAgain(isLeft, () => play(each)),
    );
    expect(those(left, isLeft)).toEqual({});
  });

  it('HF-54 leaves a key whose holder died to others, while the next of its keys is busy', async () => {
    const { hot, colds } = stage.newKeys('hot key first', 1);
    const cold = colds[0]!;
    await stage.takeFor(store, cold, 700);
    const leaving = new AbortController();
    const call = one.acquire([hot, cold], { wait: '20s', signal: leaving.signal }).catch(ignore);
    await sleep(300);
    const job = await other.acquire(hot, { wait: AT_ONCE_MS });
    await sleep(500);
    const refusals = [];
    for (const until = performance.now() + 600; performance.now() < until; await sleep(20)) {
      const lock = await other.tryAcquire(cold);
      if (lock === null) refusals.push(performance.now());
      await lock?.release();
    }
    leaving.abort();
    await call;
    await job.release();
    // The first ones may be right before the call finds that the key is free.
    expect(refusals.length).toBeLessThan(10);
  });

  it.each(ORDERS)(
    'HF-51 has the largest fencing token of its keys, and the next one of each is larger: %s',
    async (order) => {
      const { hot, colds } = stage.newKeys(order, 2);
      const all = [hot, ...colds];
      const alone = async (key: string, locks: LockService): Promise<number> => {
        const lock = await locks.acquire(key, { wait: '5s' });
        await lock.release();
        return lock.fencingToken;
      };
      for (let round = 0; round < 10; round += 1) {
        // A key that had many holders may have a token that is ahead of the others.
        const before: number[] = [];
        for (const key of all) before.push(await alone(key, one));
        for (let turn = 0; turn < 20; turn += 1)
          before.push(await alone(all[round % all.length]!, one));
        const last = all[(round + 1) % all.length]!;
        const job = await other.acquire(last);
        const call = one.acquire(all, { wait: '20s' });
        if (round % 2 === 0) await sleep(20);
        await job.release();
        const lock = await call;
        before.push(job.fencingToken);
        expect(lock.fencingToken).toBeGreaterThan(Math.max(...before));
        await lock.release();
        const after: number[] = [];
        for (const key of all) after.push(await alone(key, other));
        expect(Math.min(...after)).toBeGreaterThan(lock.fencingToken);
      }
    },
  );
});

describe.each(['the store in memory', 'one Redis'] as const)(
  'callers of several keys in line: %s',
  (store) => {
    it('HF-6 a release of two keys serves the older caller of both before a younger one of the first', async () => {
      const { hot, colds } = stage.newKeys('hot key first', 1);
      const both = [hot, ...colds];
      const standing = async (count: number): Promise<void> => {
        if (store === 'the store in memory') await setImmediate();
        else await eventually(async () => (await stage.placesAt(hot)) === count);
      };
      const [holding, older, younger] = await Promise.all([
        stage.newService(store),
        stage.newService(store),
        stage.newService(store),
      ]);
      const order: string[] = [];
      const held = await holding.acquire(both);
      const first = older.run(both, { wait: '1m' }, () => order.push('older'));
      await standing(1);
      const second = younger.run(hot, { wait: '1m' }, () => order.push('younger'));
      await standing(2);
      await held.release();
      await Promise.all([first, second]);
      expect(order).toEqual(['older', 'younger']);
    });
  },
);

describe('many callers of many keys', () => {
  it(
    'HF-6 a request looks at a bounded number of places in line',
    async () => {
      // On a loaded machine the server takes its time for scripts of this size: one that is too late would be sent again, and take more.
      const [holding, waiting] = await Promise.all([
        stage.newService('one Redis', { nodeTimeout: '20s' }),
        stage.newService('one Redis', { nodeTimeout: '20s' }),
      ]);
      const common = Array.from({ length: 50 }, (_, index) => `common:${String(index)}`);
      const last = await holding.acquire('last');
      const callers = Array.from({ length: 30 }, (_, index) =>
        waiting.run([...common, `own:${String(index)}`, 'last'], { wait: '1m' }, () => index),
      );
      await eventually(async () => (await stage.placesAt('last')) === callers.length, {
        withinMs: 20_000,
      });
      const before = await stage.server.commandStats();
      await holding.tryAcquire([...common, 'last']);
      const added = subtractCommandStats(await stage.server.commandStats(), before);
      await last.release();
      expect(sumCommandStats(added)).toBeLessThan(60_000);
      await expect(Promise.all(callers)).resolves.toHaveLength(callers.length);
    },
    LIMIT_MS,
  );
});

describe.each(STORES)('a free key beside long jobs: %s', (store) => {
  let services: Services;

  beforeAll(async () => {
    services = await servicesAt(store);
  });

  /** Plays jobs and their waiters while somebody tries to have the hot key. */
  async function partBeside(
    hot: string,
    start: (signal: AbortSignal) => readonly Promise<unknown>[],
  ): Promise<number> {
    const ending = new AbortController();
    // Each of ten jobs sleeps with it, and each of ten waiters.
    setMaxListeners(0, ending.signal);
    const playing = start(ending.signal);
    const part = await partGranted(services.others, hot, {
      lengthMs: LENGTH_MS,
      mode: 'exclusive',
    });
    ending.abort();
    await Promise.all(playing);
    return part;
  }

  const pause = (ms: number, signal: AbortSignal): Promise<unknown> =>
    sleep(ms, undefined, { signal }).catch(ignore);

  share(it.skip, it)(
    'HF-51 is had by 95, 90 and 80 % beside 1, 3 and 10 waiters, when the jobs take 3 s and are repeated',
    async () => {
      const LEAST = { 1: 0.95, 3: 0.9, 10: 0.8 } as const;
      const cases = ORDERS.flatMap((order) => COUNTS.map((count) => ({ order, count })));
      const play = ({ order, count }: (typeof cases)[number]): Promise<number> => {
        const { hot, colds } = stage.newKeys(order, count);
        const again = async (signal: AbortSignal, work: () => Promise<unknown>): Promise<void> => {
          while (!signal.aborted) await work().catch(ignore);
        };
        return partBeside(hot, (signal) =>
          colds.flatMap((cold, index) => [
            again(signal, () =>
              services.jobs.run(cold, { wait: '20s', signal }, () => pause(3_000, signal)),
            ),
            again(signal, async () => {
              const waiter = services.waiters[index % services.waiters.length]!;
              await waiter.run([hot, cold], { wait: '20s', signal }, ignore);
              await pause(200 * Math.random(), signal);
            }),
          ]),
        );
      };
      const parts = await inAllCases(
        cases,
        ({ order, count }) =>
          `${order}, waiters: ${String(count)}, at least ${percent(LEAST[count])}`,
        async (each) => {
          const part = await play(each);
          return part < LEAST[each.count] ? percent(part) : '';
        },
      );
      expect(those(parts, (what) => what !== '')).toEqual({});
    },
    LIMIT_MS,
  );

  share(it.skip, it)(
    'HF-51 is had by 90 % beside a stream of one new waiter a second',
    async () => {
      const stream = (order: Order): Promise<number> => {
        const seconds = Math.ceil(LENGTH_MS / 1_000);
        const { hot, colds } = stage.newKeys(order, seconds);
        return partBeside(hot, (signal) =>
          colds.map(async (cold, second) => {
            // Half of the jobs have begun right before.
            const ageMs = second % 2 === 0 ? 20 : 900;
            await pause(1_000 * second, signal);
            const job = await services.jobs.acquire(cold);
            await pause(ageMs, signal);
            const waiter = services.waiters[second % services.waiters.length]!;
            await waiter.run([hot, cold], { wait: '20s', signal }, ignore).catch(ignore);
            await job.release();
          }),
        );
      };
      const parts = await inAllCases(ORDERS, (order) => order, stream);
      expect(those(parts, (part) => part < 0.9)).toEqual({});
    },
    LIMIT_MS,
  );
});
