import { describe, expect, it } from '@jest/globals';
import { LockConfigurationError } from '../../lib/errors.js';
import {
  holdModeFrom,
  NO_OPTIONS,
  refuseLongMinHold,
  resolveAcquireOptions,
} from '../../lib/options/acquire-options.js';
import { optionsAndWork, optionsOf } from '../../lib/options/call-arguments.js';
import { resolveOptions } from '../../lib/options/resolve-options.js';

const inMemory = resolveOptions({ store: 'memory' });
const onOne = resolveOptions({ redis: 'redis://a' });
const onThree = resolveOptions({ redis: ['redis://a', 'redis://b', 'redis://c'] });

describe('the options of a call', () => {
  it('are worked out once for a service where none are given', () => {
    const first = resolveAcquireOptions(NO_OPTIONS, inMemory);
    expect(resolveAcquireOptions(NO_OPTIONS, inMemory)).toBe(first);
    expect(resolveAcquireOptions(NO_OPTIONS, onOne)).not.toBe(first);
    expect(first).toMatchObject({ ttlMs: 30_000, waitMs: 10_000, mode: 'exclusive' });
  });

  it('are those of the call where some are given', () => {
    const first = resolveAcquireOptions({ ttl: '1s', minHold: '1s' }, inMemory);
    expect(first).toMatchObject({ ttlMs: 1_000, minHoldMs: 1_000 });
    expect(resolveAcquireOptions({ ttl: '2s' }, inMemory)).toMatchObject({ ttlMs: 2_000 });
    expect(resolveAcquireOptions(NO_OPTIONS, inMemory)).toMatchObject({ ttlMs: 30_000 });
  });
});

describe('how a lock is held', () => {
  it('is alone, with others, or with so many', () => {
    expect(holdModeFrom({})).toBe('exclusive');
    expect(holdModeFrom({ mode: 'exclusive' })).toBe('exclusive');
    expect(holdModeFrom({ mode: 'shared' })).toBe('shared');
    expect(holdModeFrom({ limit: 3 })).toBe('limit:3');
  });

  it.each(['exclusive', 'shared'] as const)('is not both limited and %s', (mode) => {
    expect(() => holdModeFrom({ mode, limit: 3 })).toThrow(
      new LockConfigurationError(
        `Option "limit" goes without "mode", which is '${mode}': a lock is exclusive, shared, or limited.`,
      ),
    );
  });

  it.each([
    ['in memory', inMemory],
    ['in one Redis', onOne],
  ])('may be limited %s', (_where, defaults) => {
    expect(resolveAcquireOptions({ limit: 2 }, defaults).mode).toBe('limit:2');
  });

  it.each([
    ['limit', { limit: 2 }],
    ['mode', { mode: 'shared' }],
  ] as const)('may not have a "%s" over several masters', (option, options) => {
    expect(() => resolveAcquireOptions(options, onThree)).toThrow(
      new LockConfigurationError(
        `Option "${option}" needs one Redis, and option "redis" lists 3 masters, over which locks are exclusive. Use a second, named ` +
          "service on one Redis: LockModule.forRoot({ name: 'single', redis: 'redis://…' }), chosen by the decorator's option \"instance\" " +
          "or by @InjectLockService('single').",
      ),
    );
  });

  it('may be exclusive over several masters', () => {
    expect(resolveAcquireOptions({ mode: 'exclusive' }, onThree).mode).toBe('exclusive');
  });
});

describe('option "minHold"', () => {
  it('is at most the TTL', () => {
    expect(() => {
      refuseLongMinHold(1_000, 1_000);
    }).not.toThrow();
    expect(() => {
      refuseLongMinHold(1_001, 1_000);
    }).toThrow(
      new LockConfigurationError(
        '"minHold" (1001 ms) is longer than the TTL of the lock (1000 ms): a process that dies leaves the lock for its TTL, and that must ' +
          'cover it. Give a "ttl" of at least 1001 ms; a lock that is released is not kept for longer than "minHold".',
      ),
    );
  });

  it('is compared with the TTL of the call', () => {
    expect(() => resolveAcquireOptions({ ttl: '1s', minHold: '2s' }, inMemory)).toThrow(
      '"minHold" (2000 ms) is longer than the TTL of the lock (1000 ms)',
    );
  });
});

const FOR_HOW_LONG = (given: string) =>
  `Give { wait: ${given} } for how long to wait, or { ttl: ${given} } for how long a lease lasts unless it is renewed.`;

describe('the arguments of a call', () => {
  const work = () => 'done';

  it('are the work, or options and the work', () => {
    expect(optionsAndWork('run', [work])).toEqual([NO_OPTIONS, work]);
    expect(optionsAndWork('run', [undefined, work])).toEqual([NO_OPTIONS, work]);
    const options = { ttl: '1s' };
    const [given, last] = optionsAndWork('run', [options, work]);
    expect(given).toBe(options);
    expect(last).toBe(work);
  });

  it('have the options before the work', () => {
    expect(() => optionsAndWork('run', [work, { ttl: '30s' }] as never)).toThrow(
      new LockConfigurationError(
        "run() takes the options before the work: run('order:42', { ttl: '30s' }, async () => { … }).",
      ),
    );
  });

  it.each<[string, unknown[], string]>([
    ['nothing', [], 'undefined'],
    ['options alone', [{ ttl: '30s' }], 'a value of type object'],
    ['options and a text', [{ ttl: '30s' }, 'work'], '"work"'],
  ])('have to have the work: not %s', (_what, rest, shown) => {
    expect(() => optionsAndWork('tryRun', rest as never)).toThrow(
      new LockConfigurationError(
        `tryRun() needs the work as its last argument, a function, received ${shown}. ` +
          "Write tryRun('order:42', async () => { … }), or take a lock by hand with acquire().",
      ),
    );
  });

  it.each<[unknown, string, string]>([
    [null, 'null', FOR_HOW_LONG('5_000')],
    [true, 'true', FOR_HOW_LONG('5_000')],
    [5_000, '5000', FOR_HOW_LONG('5000')],
    ['5s', '"5s"', FOR_HOW_LONG('"5s"')],
    [['a', 'b'], 'a list', "Several keys are one list: ['a', 'b']."],
    [new AbortController().signal, 'a value of type object', 'Give { signal }.'],
    [
      work,
      'a value of type function',
      "Work that is to be done under a lock goes to run('order:42', work).",
    ],
  ])('have an object for options, not %p', (options, shown, remedy) => {
    for (const call of ['acquire', 'runOnce'] as const)
      expect(() => optionsOf(call, options as never)).toThrow(
        new LockConfigurationError(
          `${call}() takes its options as an object, received ${shown}. ${remedy}`,
        ),
      );
  });

  it('that the call does not know are refused, but for those of runOnce', () => {
    expect(() => optionsOf('run', { colour: 'red' })).toThrow('run() has no option "colour".');
    expect(optionsOf('runOnce', { colour: 'red' })).toEqual({ colour: 'red' });
    expect(optionsOf('tryRun', { wait: undefined })).toEqual({ wait: undefined });
  });
});
