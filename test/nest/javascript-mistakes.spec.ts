import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockConfigurationError, LockService, RunOnce, WithLock } from 'nestjs-holdfast';

/** What JavaScript lets through: the compiler's complaint is what these tests are about. */
type Anything = (...args: unknown[]) => unknown;

const withLock = WithLock as Anything;
const runOnce = RunOnce as Anything;

/** Puts what a decorator's call returns on `OrdersService.pay`. */
function decorated(decorator: unknown, as?: (...args: unknown[]) => unknown[]): void {
  class OrdersService {
    async pay(id: string): Promise<string> {
      return id;
    }
  }
  const target: unknown = OrdersService.prototype;
  const descriptor = Object.getOwnPropertyDescriptor(target, 'pay');
  const args = [target, 'pay', descriptor];
  (decorator as Anything)(...(as?.(...args) ?? args));
}

const messageOf = (work: () => unknown): string => {
  try {
    work();
  } catch (error) {
    expect(error).toBeInstanceOf(LockConfigurationError);
    return (error as Error).message;
  }
  return 'nothing was thrown';
};

describe('a decorator that JavaScript calls wrongly', () => {
  it.each([
    [
      'no key',
      () => withLock(),
      "@WithLock on OrdersService.pay has no key. Name what to lock: @WithLock('order:<orderId>').",
    ],
    ['an empty list', () => withLock([]), '@WithLock on OrdersService.pay has no key.'],
    [
      'its key in an object',
      () => withLock({ key: 'order:<id>', ttl: 5_000 }),
      '@WithLock on OrdersService.pay needs its key as the first argument, received a value of type object. Options come second: ' +
        "@WithLock('order:<orderId>', { wait: '5s' }).",
    ],
    ['a number as its key', () => withLock(5), 'received 5.'],
    [
      'nothing as its key',
      () => withLock(null, 'a'),
      'needs its key as the first argument, received null.',
    ],
    [
      'several keys whose holders it would replace',
      () => withLock(['a', 'b'], { onLocked: 'replace' }),
      `@WithLock on OrdersService.pay: Option "onLocked": 'replace' goes with one key, and there are 2`,
    ],
    [
      'a function in a list',
      () => withLock(['a', () => 'b']),
      '@WithLock on OrdersService.pay has a list of keys with a value of type function in it. A list holds templates; a function ' +
        'takes the place of the whole list.',
    ],
    [
      'a number where options belong',
      () => withLock('a', 5_000),
      '@WithLock on OrdersService.pay takes its options as an object, received 5000.',
    ],
    [
      'a second key where options belong',
      () => withLock('a', 'b'),
      `takes its options as an object, received "b". Write @WithLock('order:<orderId>', { wait: '5s' }). Several keys are one list: @WithLock(['a', 'b']).`,
    ],
    [
      'a misspelt option',
      () => withLock('a', { tll: 5_000 }),
      '@WithLock on OrdersService.pay has no option "tll". Did you mean "ttl"? Its options are ttl,',
    ],
    [
      'an option of other libraries',
      () => withLock('a', { retryCount: 5 }),
      'has no option "retryCount". Give "wait", how long to wait: a waiting call is woken by the release. Its options are',
    ],
    [
      'a value that an option does not have',
      () => withLock('a', { returns: 'observables' }),
      `@WithLock on OrdersService.pay: Option "returns" must be 'promise', 'observable' or 'iterable', received "observables".`,
    ],
    [
      'a service without a name',
      () => runOnce('a', { instance: '' }),
      '@RunOnce on OrdersService.pay: Option "instance" must be a symbol, or a text that is not empty, received "".',
    ],
    ['no key', () => runOnce(), '@RunOnce on OrdersService.pay has no key.'],
    [
      'options alone',
      () => runOnce({ attempts: 2 }),
      '@RunOnce on OrdersService.pay needs its key',
    ],
    ['a number where options belong', () => runOnce('a', 5), '@RunOnce on OrdersService.pay takes'],
    ['a list', () => runOnce(['a', 'b']), '@RunOnce on OrdersService.pay needs one key'],
  ])('says what is wrong with %s', (_what, decorate, message) => {
    expect(messageOf(() => decorated(decorate()))).toContain(message);
  });

  it.each([
    ['@WithLock', withLock],
    ['@RunOnce', runOnce],
  ])('says that %s needs parentheses', (name, decorator) => {
    const message = `${name} on OrdersService.pay needs parentheses, and a key in them: ${name}('order:<orderId>').`;
    expect(messageOf(() => decorated(decorator))).toBe(message);
    const context = { kind: 'method', name: 'pay', addInitializer: () => undefined };
    expect(messageOf(() => decorator(() => 1, context))).toBe(
      message.replace('OrdersService.pay', 'pay'),
    );
  });

  it.each([
    ['@WithLock', withLock],
    ['@RunOnce', runOnce],
  ])('says that %s belongs on a method', (name, decorator) => {
    class OrdersService {
      declare pay: () => Promise<void>;
      static async refund(): Promise<void> {}
      get total(): number {
        return Date.now();
      }
    }
    const { prototype } = OrdersService;
    const onPay =
      `${name} on OrdersService.pay is on a property, such as an arrow function, which no prototype has. Make it a method: ` +
      'async pay() { … }.';
    const decorate = decorator('a') as Anything;
    expect(messageOf(() => decorate(prototype, 'pay'))).toBe(onPay);
    expect(messageOf(() => decorate(prototype, 'pay', { initializer: () => 1 }))).toBe(onPay);
    expect(messageOf(() => decorate(OrdersService))).toBe(
      `${name} on OrdersService is on a class. Put it on each method that needs a lock.`,
    );
    const total = Object.getOwnPropertyDescriptor(prototype, 'total');
    expect(messageOf(() => decorate(prototype, 'total', total))).toBe(
      `${name} on OrdersService.total is on an accessor. Move its work into an async method.`,
    );
    const bare = `needs parentheses, and a key in them: ${name}('order:<orderId>').`;
    expect(messageOf(() => decorator(OrdersService))).toBe(`${name} on OrdersService ${bare}`);
    expect(messageOf(() => decorator(OrdersService, 'refund', {}))).toBe(
      `${name} on OrdersService.refund ${bare}`,
    );
  });

  it('says that it was compiled as a standard decorator', () => {
    const context = { kind: 'method', name: 'pay', addInitializer: () => undefined };
    const asStandard = (): unknown[] => [() => 1, context];
    expect(messageOf(() => decorated(withLock('a'), asStandard))).toBe(
      '@WithLock on pay was compiled as a standard decorator, and Nest needs the older ones: set "experimentalDecorators": true in ' +
        'tsconfig.json, or version "legacy" of the decorators plugin of Babel.',
    );
  });

  it('takes null and undefined for no options', () => {
    decorated(withLock('a', null));
    decorated(withLock('a', undefined));
    decorated(runOnce('a', undefined));
  });
});

describe('a call that JavaScript makes wrongly', () => {
  let locks: LockService;
  beforeEach(() => {
    locks = new LockService({ store: 'memory' });
  });
  afterEach(() => locks.shutdown(0));

  const work = async (): Promise<string> => 'done';

  it.each<[string, readonly unknown[], string]>([
    [
      'acquire',
      ['x', 5_000],
      'acquire() takes its options as an object, received 5000. Give { wait: 5000 } for how long to wait, or { ttl: 5000 } for how long a ' +
        'lease lasts unless it is renewed.',
    ],
    ['acquire', ['x', '5s'], 'received "5s". Give { wait: "5s" }'],
    ['acquire', ['x', null], 'acquire() takes its options as an object, received null.'],
    [
      'acquire',
      ['x', work],
      "received a value of type function. Work that is to be done under a lock goes to run('order:42', work).",
    ],
    ['acquire', ['x', new AbortController().signal], 'Give { signal }.'],
    ['acquire', ['x', ['y']], 'received a list. Several keys are one list'],
    [
      'acquire',
      ['x', { wiat: 5 }],
      'acquire() has no option "wiat". Did you mean "wait"? Its options are ttl, autoExtend, maxHold, wait, signal, onLocked, replaceWait, mode, limit, minHold, ' +
        'release, places.',
    ],
    [
      'acquire',
      ['x', { reentrant: false }],
      'acquire() has no option "reentrant". It is an option of run() and tryRun(): acquire() never reuses a lock. Its options are',
    ],
    [
      'run',
      ['x', { acquireTimeout: 5 }, work],
      'run() has no option "acquireTimeout". Give "wait", how long to wait: a waiting call is woken by the release. Its options are',
    ],
    [
      'tryRun',
      ['x', { toString: 5 }, work],
      'tryRun() has no option "toString". Its options are ttl, autoExtend, maxHold, signal, mode, limit, minHold, release, places, reentrant.',
    ],
    [
      'acquire',
      ['x', { timeout: 5 }],
      'Give "wait" for how long to wait, or "maxHold" for how long to hold.',
    ],
    ['tryAcquire', ['x', { wait: 500 }], 'tryAcquire() does not wait: use acquire()'],
    ['tryRun', ['x', { wait: '1s' }, work], 'tryRun() does not wait: use run()'],
    ['tryAcquire', ['x', 5_000], 'tryAcquire() takes its options as an object, received 5000.'],
    [
      'run',
      ['x'],
      "run() needs the work as its last argument, a function, received undefined. Write run('order:42', async () => { … }), or take a lock " +
        'by hand with acquire().',
    ],
    ['run', ['x', { wait: 5 }], 'run() needs the work as its last argument'],
    [
      'run',
      ['x', work, { wait: 5 }],
      "run() takes the options before the work: run('order:42', { ttl: '30s' }, async () => { … }).",
    ],
    ['run', ['x', 5_000, work], 'run() takes its options as an object, received 5000.'],
    ['tryRun', ['x', work, {}], 'tryRun() takes the options before the work'],
    ['runOnce', ['x', 5, work], 'runOnce() takes its options as an object'],
    ['runOnce', ['x'], 'runOnce() needs the work as its last argument'],
    ['runOnce', ['x', { atempts: 1 }, work], 'Did you mean "attempts"?'],
  ])('says what is wrong with %s %j', async (method, args, message) => {
    const call = (locks as unknown as Record<string, Anything>)[method] as Anything;
    const outcome = Reflect.apply(call, locks, args) as Promise<unknown>;
    await expect(outcome).rejects.toThrow(LockConfigurationError);
    await expect(outcome).rejects.toThrow(message);
    expect(await locks.inspect('x')).toEqual({ held: false });
  });

  it('may leave the options undefined', async () => {
    await (await locks.tryAcquire('x', { wait: undefined } as object))?.release();
    expect(await locks.run('x', undefined as never, work)).toBe('done');
    await (await locks.acquire('x', undefined)).release();
  });
});
