import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import {
  LockConfigurationError,
  LockService,
  RunOnce,
  WithLock,
  type LockModuleOptions,
} from 'nestjs-holdfast';

const redis = 'redis://127.0.0.1:1';
const LONGER = Number.MAX_VALUE;
const LONGEST = '100y';

let locks: LockService;

beforeEach(() => {
  Logger.overrideLogger(false);
  locks = new LockService({ store: 'memory' });
});

afterEach(() => locks.shutdown(0));

const tooLong = (option: string): string =>
  `Option "${option}" must be a duration of at most 100 years, received ${String(LONGER)}. A number is a number of milliseconds.`;

const errorOf = async (call: () => unknown): Promise<unknown> => {
  try {
    return await call();
  } catch (error) {
    return error;
  }
};

async function expectTooLong(option: string, call: () => unknown): Promise<void> {
  const error = await errorOf(call);
  expect(error).toBeInstanceOf(LockConfigurationError);
  expect((error as Error).message).toContain(tooLong(option));
}

describe('durations that no Redis can keep', () => {
  it.each<[string, LockModuleOptions]>([
    ['ttl', { store: 'memory', ttl: LONGER }],
    ['wait', { store: 'memory', wait: LONGER }],
    ['nodeTimeout', { store: 'memory', nodeTimeout: LONGER }],
    ['maxClockStep', { store: 'memory', maxClockStep: LONGER }],
    ['shutdownTimeout', { store: 'memory', shutdownTimeout: LONGER }],
    ['handoff.tenure', { store: 'memory', handoff: { tenure: LONGER } }],
    ['restartGuard.maxTtl', { redis, restartGuard: { maxTtl: LONGER } }],
    ['replicas.timeout', { redis, replicas: { ack: 1, timeout: LONGER } }],
  ])('HF-20 "%s" of the module is refused at the start', async (option, options) => {
    await expectTooLong(option, () => new LockService(options));
  });

  it.each(['ttl', 'wait', 'maxHold', 'minHold'])(
    'HF-20 "%s" of a call, and of a decorator, is refused',
    async (option) => {
      await expectTooLong(option, () => locks.acquire('key', { [option]: LONGER }));
      await expectTooLong(option, () => locks.run('key', { [option]: LONGER }, () => undefined));
      await expectTooLong(option, () => decorate('key', { [option]: LONGER })({}, 'pay', METHOD));
    },
  );

  it('HF-20 "keepDone" of work that is done once is refused, and "ttl" of extend', async () => {
    await expectTooLong('keepDone', () =>
      locks.runOnce('key', { keepDone: LONGER }, () => undefined),
    );
    await expectTooLong('keepDone', () => RunOnce('key', { keepDone: LONGER })({}, 'pay', METHOD));
    const lock = await locks.acquire('key');
    await expectTooLong('ttl', () => lock.extend(LONGER));
    await lock.extend(LONGEST);
    await lock.release();
  });
});

/** As JavaScript calls it: the types let only options through that are written out. */
const decorate = WithLock as (key: string, options: object) => MethodDecorator;

const METHOD = { value: (): Promise<void> => Promise.resolve() };
