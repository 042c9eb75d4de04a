import { afterAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { RedisLockModule, WithLock } from '../../../lib/index.js';
import { LockConfigurationError, LockError } from '../../../lib/errors.js';
import { CALLS } from '../../../lib/options/acquire-options.js';
import { LOCK_MODULE } from '../../../lib/options/lock-module-options.js';
import { resolveOptions } from '../../../lib/options/resolve-options.js';
import { WITH_LOCK } from '../../../lib/nest/methods/method-options.js';
import { checkedOptions } from '../../../lib/options/unknown-option.js';
import { LOCKING_WORKER } from '../../../lib/worker/worker-options.js';
import { cases } from '../../support/cases.js';
import { Locks } from '../../support/locks.js';
import { hostileNumber, hostileText } from './hostile-values.js';

const numRuns = cases(200, 2_000);

/** Of a longer one nobody reads the end. A key of 1,024 characters is repeated whole, escapes and all. */
const LONGEST_MESSAGE = 8_000;

const SECRET = 's3cr3t-pa55word';

const url = fc
  .tuple(fc.constantFrom('redis://', 'rediss://', '', 'http://'), fc.constantFrom(':', '/', ''))
  .map(([scheme, end]) => `${scheme}user:${SECRET}@host${end}`);

const value = fc.oneof(
  hostileNumber,
  hostileText,
  url,
  url.map((location) => [location, { url: location, password: SECRET }]),
  fc.constantFrom<unknown>(
    ...['1s', '30s', 10, 100, 'memory', 'shared', 'on-expiry', true, false, null, undefined],
    ...[() => 1, Symbol('s'), new Date(NaN), [], {}, AbortSignal.abort(), Object.create(null)],
  ),
  fc.anything({ maxDepth: 2, withBigInt: true, withNullPrototype: true }),
);

/** Options by the names of a schema, and by others, with whatever values. */
const optionsOf = (schema: object): fc.Arbitrary<unknown> => {
  const names = fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom(...Object.keys(schema)) },
    { weight: 1, arbitrary: fc.oneof(hostileText, fc.constantFrom('__proto__', 'constructor')) },
  );
  return fc.oneof(
    { weight: 9, arbitrary: fc.dictionary(names, value, { maxKeys: 4 }) },
    { weight: 1, arbitrary: value },
  );
};

function expectRefusal(error: unknown): void {
  // The reason of a signal is the caller's own.
  if (error instanceof DOMException && error.name === 'AbortError') return;
  if (!(error instanceof LockConfigurationError || error instanceof LockError)) throw error;
  const texts = error instanceof LockError ? [error.message, error.detail] : [error.message];
  for (const text of texts) {
    expect(text.length).toBeLessThan(LONGEST_MESSAGE);
    expect(text).not.toContain(SECRET);
  }
}

function refuses(make: () => unknown): void {
  try {
    make();
  } catch (error) {
    expectRefusal(error);
  }
}

const locks = new Locks({ store: 'memory', wait: 0 });
afterAll(() => locks.shutdown());

describe('whatever is given for options', () => {
  it('the module takes, or refuses with an error that says what to do and no secret', () => {
    fc.assert(
      fc.property(optionsOf(LOCK_MODULE.options), (options) => {
        refuses(() => resolveOptions(options as never));
        refuses(() => RedisLockModule.forRoot(options as never));
      }),
      { numRuns },
    );
  });

  it('a decorator takes, or refuses', () => {
    fc.assert(
      fc.property(value, optionsOf(WITH_LOCK), (key, options) => {
        // Applied without parentheses, a text is the name of a member.
        if (typeof options === 'string') return;
        refuses(() => {
          class Service {
            @WithLock(key as string, options as never)
            work(): Promise<void> {
              return Promise.resolve();
            }
          }
          return Service;
        });
      }),
      { numRuns },
    );
  });

  it('a worker takes, or refuses', () => {
    fc.assert(
      fc.property(optionsOf(LOCKING_WORKER.options), (options) => {
        refuses(() => checkedOptions(LOCKING_WORKER, options as never));
      }),
      { numRuns },
    );
  });

  it('a call takes, or refuses, and leaves nothing locked', async () => {
    await fc.assert(
      fc.asyncProperty(
        value,
        optionsOf(CALLS.tryRun.options),
        value,
        async (key, options, work) => {
          const outcomes = await Promise.allSettled([
            locks.tryRun(key as string, options as never, () => 1),
            locks.tryRun('key', options as never, work as never),
            locks.tryAcquire(key as string, options as never).then((lock) => lock?.release()),
          ]);
          for (const outcome of outcomes)
            if (outcome.status === 'rejected') expectRefusal(outcome.reason);
        },
      ),
      { numRuns },
    );
  });
});
