import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import {
  LockConfigurationError,
  LockService,
  RunOnce,
  WithLock,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import { resolveOptions } from '../../../lib/options/resolve-options.js';

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
    ['fencingTokenRetention', { store: 'memory', fencingTokenRetention: LONGER }],
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

const SHORT: readonly [unknown, string][] = [
  [5, 'received 5, which is 5 ms. For 5 seconds give 5000 or "5s".'],
  ['10', 'received "10", which is 10 ms. For 10 seconds give 10000 or "10s".'],
  [0.5, 'received 0.5, which is 0.5 ms. For 0.5 seconds give 500 or "0.5s".'],
  ['20ms', 'received "20ms". Give milliseconds (30_000) or a string such as "500ms", "30s", "5m".'],
];

async function expectTooShort(
  option: string,
  least: string,
  call: (value: unknown) => unknown,
): Promise<void> {
  for (const [value, remedy] of SHORT) {
    const error = await errorOf(() => call(value));
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect((error as Error).message).toContain(`Option "${option}" must be ${least}, ${remedy}`);
  }
}

const OR_ZERO = '0 or a duration of at least 50 ms';
const NOT_ZERO = 'a duration of at least 50 ms';

describe('seconds that are given as a number of milliseconds', () => {
  it.each(['wait', 'shutdownTimeout', 'fencingTokenRetention'])(
    'HF-39 "%s" of the module is refused at the start, and may be 0',
    async (option) => {
      await expectTooShort(option, OR_ZERO, (value) => module({ [option]: value }));
      for (const none of [0, '0', '0s']) module({ [option]: none });
    },
  );

  it.each([
    ['wait', OR_ZERO],
    ['minHold', OR_ZERO],
    ['maxHold', NOT_ZERO],
    ['ttl', NOT_ZERO],
  ])('HF-39 "%s" of a call, and of a decorator, is refused', async (option, least) => {
    await expectTooShort(option, least, (value) => locks.acquire('key', { [option]: value }));
    await expectTooShort(option, least, (value) =>
      decorate('key', { [option]: value })({}, 'pay', METHOD),
    );
  });

  it('HF-39 "keepDone" of work that is done once is at least 1 s: 60 did not stop a second charge', async () => {
    const charge = (): number => 42;
    const least = 'a duration of at least 1000 ms';
    const keepDone = (value: unknown): unknown =>
      locks.runOnce('payment', { keepDone: value as number }, charge);
    await expectTooShort('keepDone', least, keepDone);
    await expect(errorOf(() => keepDone(60))).resolves.toMatchObject({
      message: `Option "keepDone" must be ${least}, received 60, which is 60 ms. For 60 seconds give 60000 or "60s".`,
    });
    await expectTooShort('keepDone', least, (value) =>
      RunOnce('payment', { keepDone: value as number })({}, 'pay', METHOD),
    );
  });

  it('HF-39 what limits one request, or one turn, may be shorter', () => {
    const nodeTimeout = 20;
    module({ nodeTimeout, handoff: { tenure: 5 } });
    resolveOptions({ redis, nodeTimeout, replicas: { ack: 1, timeout: 10 } });
  });
});

const module = (options: object): unknown => resolveOptions({ store: 'memory', ...options });

/** As JavaScript calls it: the types let only options through that are written out. */
const decorate = WithLock as (key: string, options: object) => MethodDecorator;

const METHOD = { value: (): Promise<void> => Promise.resolve() };
