import { inspect } from 'node:util';
import type { LockDriver } from '../store/driver/lock-driver.js';
import { systemRuntime } from '../time/runtime.js';

/** One check of a driver, for a test of any framework: `it(name, check)`. */
export interface DriverCheck {
  /** What the driver does. */
  readonly name: string;
  /** Rejects with a sentence if the driver does not. */
  readonly check: () => Promise<void>;
}

/** What `driverSuite` checks. */
export interface DriverSuiteOptions {
  /** Returns a driver whose database is ready. Two of them, one for each of two processes, share the locks. */
  readonly open: () => LockDriver | Promise<LockDriver>;
  /** Returns a driver whose database cannot be reached, such as one with a wrong port. */
  readonly openUnreachable: () => LockDriver | Promise<LockDriver>;
}

/** A lease that does not end while a check runs. */
const LONG_MS = 60_000;

/** A lease whose end a check waits for. */
const SHORT_MS = 300;

/** A check may not wait longer than that for the end of a lease. */
const PATIENCE_MS = 2_000;

/** Nor longer than that for a reply: test frameworks end a test after 5 s, or never. */
const REPLY_MS = 4_000;

/** Keys that a careless comparison takes for one, or that break a statement. */
const ODD_KEYS = ['key', 'KEY', 'key ', 'kéy', 'ke\u0301y', "k'; --", 'k%y', 'k_y', '42', '42.0'];

/** As long as keys can be, apart from the ends that tell two of them apart. */
const LONG_KEY = 'k'.repeat(1_024);

/** One check: a driver of this process, one of another process, and a key that nothing else uses. */
interface Scene {
  readonly here: LockDriver;
  readonly there: LockDriver;
  readonly key: string;
}

const CHECKS: Readonly<Record<string, (scene: Scene) => Promise<void>>> = {
  'grants a free key': async ({ here, key }) => {
    is(await here.acquire(key, 'a', LONG_MS), 'acquired');
  },

  'refuses a key that another token holds, and tells what is left of its lease': async (scene) => {
    const { here, there, key } = scene;
    is(await here.acquire(key, 'a', LONG_MS), 'acquired');
    for (const driver of [here, there]) {
      const reply = await driver.acquire(key, 'b', LONG_MS);
      is(reply, 'held');
      if (reply.status !== 'held') return;
      const { remainingMs } = reply;
      const isLeft = typeof remainingMs === 'number' && remainingMs > 0 && remainingMs <= LONG_MS;
      assert(
        isLeft,
        `remainingMs must be more than 0 and at most ${String(LONG_MS)}, and is ${say(remainingMs)}`,
      );
    }
  },

  'grants a key to one of many that ask at once, and to the next after each release': async ({
    here,
    there,
    key,
  }) => {
    for (let round = 0; round < 5; round += 1) {
      const asked = Array.from({ length: 10 }, (_, index) => `${String(round)}.${String(index)}`);
      const replies = await Promise.all(
        asked.map((token, index) => (index % 2 ? here : there).acquire(key, token, LONG_MS)),
      );
      const winners = asked.filter((_, index) => replies[index]?.status === 'acquired');
      assert(
        winners.length === 1,
        `one of 10 must acquire the key, and ${say(winners.length)} did`,
      );
      is(await there.release(key, winners[0] ?? ''), 'released');
    }
  },

  'grants a key again to the token that holds it': async ({ here, there, key }) => {
    is(await here.acquire(key, 'a', LONG_MS), 'acquired');
    is(await here.acquire(key, 'a', LONG_MS), 'acquired');
    is(await there.acquire(key, 'b', LONG_MS), 'held');
    is(await here.release(key, 'a'), 'released');
    is(await there.acquire(key, 'b', LONG_MS), 'acquired');
  },

  'tells keys apart, whatever characters and length they have': async ({ here, there, key }) => {
    const long = ['a', 'b'].map((end) => LONG_KEY + end);
    const keys = [...ODD_KEYS, ...long].map((end) => key + end);
    for (const [index, each] of keys.entries())
      is(await here.acquire(each, `of ${String(index)}`, LONG_MS), 'acquired', each);
    for (const each of keys) is(await there.acquire(each, 'b', LONG_MS), 'held', each);
    for (const [index, each] of keys.entries())
      is(await there.release(each, `of ${String(index)}`), 'released', each);
  },

  'tells tokens apart by case': async ({ here, key }) => {
    is(await here.acquire(key, 'token', LONG_MS), 'acquired');
    is(await here.acquire(key, 'TOKEN', LONG_MS), 'held');
    is(await here.extend(key, 'TOKEN', LONG_MS), 'lost');
    is(await here.release(key, 'TOKEN'), 'not-held');
  },

  'frees a key at its release, once': async ({ here, there, key }) => {
    is(await here.acquire(key, 'a', LONG_MS), 'acquired');
    is(await here.release(key, 'a'), 'released');
    is(await here.release(key, 'a'), 'not-held');
    is(await there.acquire(key, 'b', LONG_MS), 'acquired');
    is(await here.release(key, 'a'), 'not-held');
    is(await here.acquire(key, 'a', LONG_MS), 'held');
  },

  'frees a key when its lease is over, and not before': async ({ here, there, key }) => {
    const since = now();
    is(await here.acquire(key, 'a', SHORT_MS), 'acquired');
    await becomesFree(there, key);
    // Clocks of processes differ in speed by far less than this.
    const afterMs = Math.ceil(now() - since) + 5;
    assert(afterMs >= SHORT_MS, `a lease of ${say(SHORT_MS)} ms was over after ${say(afterMs)} ms`);
  },

  'extends a lease from now on': async ({ here, there, key }) => {
    is(await here.acquire(key, 'a', SHORT_MS), 'acquired');
    is(await here.extend(key, 'a', LONG_MS), 'extended');
    await sleep(SHORT_MS + 50);
    is(await there.acquire(key, 'b', LONG_MS), 'held');
  },

  'shortens a lease': async ({ here, there, key }) => {
    is(await here.acquire(key, 'a', LONG_MS), 'acquired');
    is(await here.extend(key, 'a', SHORT_MS), 'extended');
    await becomesFree(there, key);
  },

  'extends and releases nothing for a token that does not hold the key': async (scene) => {
    const { here, there, key } = scene;
    is(await here.extend(key, 'a', LONG_MS), 'lost');
    is(await here.release(key, 'a'), 'not-held');
    is(await there.acquire(key, 'b', LONG_MS), 'acquired');
    is(await here.extend(key, 'a', LONG_MS), 'lost');
    is(await here.release(key, 'a'), 'not-held');
    is(await here.acquire(key, 'c', LONG_MS), 'held');
    is(await there.extend(key, 'b', LONG_MS), 'extended');
  },

  'neither extends nor releases a lease that is over, even if no other token has the key': async (
    scene,
  ) => {
    const { here, there, key } = scene;
    is(await here.acquire(key, 'a', SHORT_MS), 'acquired');
    await sleep(SHORT_MS + 50);
    is(await here.extend(key, 'a', LONG_MS), 'lost');
    is(await here.release(key, 'a'), 'not-held');
    is(await there.acquire(key, 'b', LONG_MS), 'acquired');
  },
};

/**
 * The checks that a `LockDriver` must pass, for tests of any framework. They use keys of their own, leave them locked
 * for a minute at most, and need real time: no fake timers.
 *
 * @example
 * ```ts
 * import { test } from 'node:test';
 * import type { LockDriver } from 'nestjs-holdfast';
 * import { driverSuite } from 'nestjs-holdfast/testing';
 *
 * function testDriver(driver: LockDriver, unreachable: LockDriver): void {
 *   const suite = driverSuite({ open: () => driver, openUnreachable: () => unreachable });
 *   for (const { name, check } of suite) void test(name, check);
 * }
 * ```
 */
export function driverSuite({ open, openUnreachable }: DriverSuiteOptions): readonly DriverCheck[] {
  const checks = Object.entries(CHECKS).map(([name, check]) => ({
    name,
    check: async () => {
      const [here, there] = [await open(), await open()].map(limited) as [LockDriver, LockDriver];
      await check({ here, there, key: `driver-suite:${systemRuntime.uuid()}:` });
    },
  }));
  return [
    ...checks,
    {
      name: 'rejects, and reports neither a refusal nor a loss, while its database is not reachable',
      check: async () => {
        const driver = limited(await openUnreachable());
        await Promise.all([
          rejects('acquire', driver.acquire('key', 'a', LONG_MS)),
          rejects('extend', driver.extend('key', 'a', LONG_MS)),
          rejects('release', driver.release('key', 'a')),
        ]);
      },
    },
  ];
}

/** Asks until another token gets the key. */
async function becomesFree(driver: LockDriver, key: string): Promise<void> {
  const since = now();
  while ((await driver.acquire(key, 'next', LONG_MS)).status !== 'acquired') {
    assert(
      now() - since < PATIENCE_MS,
      `a lease of ${say(SHORT_MS)} ms still holds the key after ${say(PATIENCE_MS)} ms`,
    );
    await sleep(10);
  }
}

async function rejects(operation: string, asked: Promise<unknown>): Promise<void> {
  const reply = await asked.catch((error: unknown) => {
    if (error instanceof CheckFailed) throw error;
    return undefined;
  });
  assert(reply === undefined, `${operation}() must reject, and resolved with ${say(reply)}`);
}

/** A driver that has to reply in time, with an object. */
function limited(driver: LockDriver): LockDriver {
  return {
    acquire: (...args) => replyOf('acquire', async () => driver.acquire(...args)),
    extend: (...args) => replyOf('extend', async () => driver.extend(...args)),
    release: (...args) => replyOf('release', async () => driver.release(...args)),
  };
}

async function replyOf<Reply extends object>(
  operation: keyof LockDriver,
  ask: () => Promise<Reply>,
): Promise<Reply> {
  let cancel = (): void => undefined;
  const timeIsUp = new Promise<never>((_, reject) => {
    cancel = systemRuntime.setTimer(() => {
      reject(new CheckFailed(`${operation}() did not settle within ${say(REPLY_MS)} ms`));
    }, REPLY_MS);
  });
  try {
    const reply = await Promise.race([ask(), timeIsUp]);
    assert(Object(reply) === reply, `${operation}() resolved with ${say(reply)}`);
    return reply;
  } finally {
    cancel();
  }
}

function is<Reply extends { readonly status: string }>(
  reply: Reply,
  status: Reply['status'],
  of?: string,
): void {
  const where = of === undefined ? '' : ` for the key ${say(of)}`;
  const { status: given } = reply;
  assert(given === status, `the reply must be ${say(status)}${where}, and is ${say(given)}`);
}

class CheckFailed extends Error {
  constructor(problem: string) {
    super(`A LockDriver failed its check: ${problem}.`);
  }
}

function assert(isRight: boolean, problem: string): void {
  if (!isRight) throw new CheckFailed(problem);
}

const now = (): number => systemRuntime.now().monotonicMs;

const sleep = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    systemRuntime.setTimer(resolve, ms);
  });

const say = (value: unknown): string => inspect(value);
