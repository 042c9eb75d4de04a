import { AsyncLocalStorage } from 'node:async_hooks';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  LockLostError,
  LockNotAcquiredError,
  LockReturnKindError,
  LockService,
  WithLock,
} from 'nestjs-holdfast';
import { firstValueFrom, from, lastValueFrom, Observable, of, Subject, toArray } from 'rxjs';
import { detailed } from '../support/detail.js';
import { deferred, type Deferred } from '../support/eventually.js';
import { Gate } from './gate.js';

let locks: LockService;
let gate: Gate;
let log: string[];
let ended: Deferred<string>;

const isHeld = async (key = 'a'): Promise<boolean> => (await locks.inspect(key)).held;
const insideOf = (): string => locks.current()?.keys.join() ?? 'outside';

class Kinds {
  readonly source = new Subject<number>();

  @WithLock('a')
  async promise(): Promise<string> {
    await gate.pass();
    return insideOf();
  }

  @WithLock('a')
  async failing(): Promise<never> {
    await Promise.resolve();
    throw new Error('its own');
  }

  /** Not `async`: throws before there is a promise. */
  @WithLock('a')
  throwing(): Promise<never> {
    throw new Error('its own');
  }

  @WithLock('a', { returns: 'observable' })
  observable(): Observable<number> {
    log.push(`called ${insideOf()}`);
    return new Observable((subscriber) => {
      log.push(`subscribed ${insideOf()}`);
      const inner = this.source.subscribe(subscriber);
      return () => {
        inner.unsubscribe();
        ended.resolve(locks.current() === undefined ? 'outside' : 'inside');
      };
    });
  }

  @WithLock('a', { returns: 'observable', wait: '20s' })
  waiting(): Observable<number> {
    log.push('called');
    return of(1);
  }

  @WithLock('a')
  async *generator(): AsyncGenerator<string, string, string | undefined> {
    try {
      for (;;) {
        try {
          const sent = yield insideOf();
          log.push(`sent ${String(sent)} ${insideOf()}`);
          if (sent === 'end') return insideOf();
        } catch (error) {
          log.push(`caught ${String(error)} ${insideOf()}`);
        }
      }
    } finally {
      log.push(`finally ${insideOf()} ${String(await isHeld())}`);
    }
  }

  @WithLock('a', { returns: 'iterable' })
  iterable(): AsyncIterable<number> {
    return {
      [Symbol.asyncIterator]: () => {
        let count = 0;
        const next = async (): Promise<IteratorResult<number>> => {
          count += 1;
          log.push(insideOf());
          return count < 3 ? { value: count, done: false } : { value: undefined, done: true };
        };
        return { next };
      },
    };
  }

  @WithLock('a', { maxHold: '150ms', ttl: '2s' })
  async *abandoned(): AsyncGenerator<number> {
    try {
      yield 1;
      log.push('went on');
      yield 2;
    } finally {
      log.push('cleaned up');
    }
  }

  @WithLock('a', { onLocked: 'skip' })
  async skipPromise(): Promise<string | undefined> {
    return 'ran';
  }

  @WithLock('a', { onLocked: ({ keys, args }) => `instead ${keys.join()} ${args.join()}` })
  async fallbackPromise(id: string): Promise<string> {
    return `ran ${id}`;
  }

  @WithLock('a', { onLocked: 'skip', returns: 'observable' })
  skipObservable(): Observable<string> {
    return of('ran');
  }

  @WithLock('a', { onLocked: () => of('in', 'stead'), returns: 'observable' })
  fallbackObservable(): Observable<string> {
    return of('ran');
  }

  @WithLock('a', { onLocked: () => 'instead', returns: 'observable' })
  fallbackValue(): Observable<string> {
    return of('ran');
  }

  @WithLock('a', { onLocked: 'skip' })
  async *skipGenerator(): AsyncGenerator<string> {
    yield 'ran';
  }

  @WithLock('a', {
    onLocked: async function* () {
      yield 'in';
      yield 'stead';
    },
  })
  async *fallbackGenerator(): AsyncGenerator<string> {
    yield 'ran';
  }

  @WithLock('a', { onLocked: 'skip' })
  async innerRefusal(): Promise<string | undefined> {
    throw new LockNotAcquiredError({ keys: ['inner'], retryAfterMs: 1, waitedMs: 0 });
  }
}

/** What the compiler would refuse. */
class Surprises {
  @WithLock('a')
  async observable(): Promise<any> {
    return of(1);
  }

  @WithLock('a')
  async iterable(): Promise<any> {
    return new Kinds().generator();
  }

  @WithLock('a', { returns: 'observable' })
  promise(): any {
    return gate.pass().then(() => {
      throw new Error('nobody listens');
    });
  }

  @WithLock('a', { returns: 'iterable' })
  value(): any {
    return 1;
  }
}

let kinds: Kinds;

beforeAll(async () => {
  locks = new LockService({ store: 'memory' });
  await locks.open();
});
afterAll(() => locks.shutdown());

beforeEach(() => {
  kinds = locks.bind(new Kinds());
  gate = new Gate();
  log = [];
  ended = deferred();
});
afterEach(async () => {
  expect(await isHeld()).toBe(false);
});

const all = async <T>(iterable: AsyncIterable<T>): Promise<T[]> => {
  const values: T[] = [];
  for await (const value of iterable) values.push(value);
  return values;
};

/** The next release, of which nobody else tells. */
const released = (): Promise<unknown> =>
  new Promise((resolve) => {
    const stop = locks.on('released', (event) => {
      stop();
      resolve(event);
    });
  });

describe('a method that returns a Promise', () => {
  it('is locked until it settles', async () => {
    const first = kinds.promise();
    await gate.reached;
    await expect(kinds.promise()).rejects.toThrow(LockNotAcquiredError);
    gate.open();
    expect(await first).toBe('a');
    expect(await isHeld()).toBe(false);
  });

  it('rejects with its own error', async () => {
    await expect(kinds.failing()).rejects.toThrow('its own');
    await expect(kinds.throwing()).rejects.toThrow('its own');
  });

  it('must not settle with a stream, which would work on without the lock', async () => {
    const surprises = locks.bind(new Surprises());
    const observable = surprises.observable();
    await expect(observable).rejects.toThrow(LockReturnKindError);
    await expect(observable).rejects.toThrow(
      detailed(
        "Surprises.observable did not return a Promise of a value. It gave an Observable: add returns: 'observable' to its @WithLock and return it as it is.",
      ),
    );
    await expect(surprises.iterable()).rejects.toThrow(detailed("add returns: 'iterable'"));
  });
});

describe('a method that returns an Observable', () => {
  it('runs inside the subscription, under the lock, to the end of the stream', async () => {
    const stream = kinds.observable();
    expect([log, await isHeld()]).toEqual([[], false]);
    const acquired = new Promise((resolve) => locks.on('acquired', resolve));
    const values = lastValueFrom(stream.pipe(toArray()));
    await acquired;
    await new Promise(setImmediate);
    expect(log).toEqual(['called a', 'subscribed a']);
    kinds.source.next(1);
    expect(await isHeld()).toBe(true);
    await expect(firstValueFrom(stream)).rejects.toThrow(LockNotAcquiredError);
    kinds.source.next(2);
    kinds.source.complete();
    expect(await values).toEqual([1, 2]);
    expect(await isHeld()).toBe(false);
  });

  it('gives the lock back with its error, and when it is unsubscribed from', async () => {
    const failing = lastValueFrom(kinds.observable());
    await new Promise(setImmediate);
    kinds.source.error(new Error('its own'));
    await expect(failing).rejects.toThrow('its own');
    expect(await isHeld()).toBe(false);

    kinds = locks.bind(new Kinds());
    const end = released();
    const subscription = kinds.observable().subscribe();
    await new Promise(setImmediate);
    expect(await isHeld()).toBe(true);
    ended = deferred();
    subscription.unsubscribe();
    await ended.promise;
    await end;
  });

  it('has given the lock back when its subscriber is notified of its error', async () => {
    const order: string[] = [];
    const stop = locks.on('released', () => order.push('released'));
    const failed = new Promise<void>((resolve) => {
      kinds.observable().subscribe({
        error: () => {
          order.push('failed');
          resolve();
        },
      });
    });
    await new Promise(setImmediate);
    kinds.source.error(new Error('its own'));
    await failed;
    stop();
    expect(order).toEqual(['released', 'failed']);
  });

  it('does not run when it is unsubscribed from as its lock is granted', async () => {
    const end = released();
    const stop = locks.on('acquired', () => {
      stop();
      subscription.unsubscribe();
    });
    const subscription = kinds.waiting().subscribe();
    await end;
    await new Promise(setImmediate);
    expect(log).toEqual([]);
  });

  it('gives the lock back when its consumer needs one value only', async () => {
    const end = released();
    const first = firstValueFrom(kinds.observable());
    await new Promise(setImmediate);
    kinds.source.next(1);
    expect(await first).toBe(1);
    await end;
  });

  it('leaves the line when it is unsubscribed from while it waits, and does not run', async () => {
    const lock = await locks.acquire('a');
    let granted = 0;
    const stop = locks.on('acquired', () => (granted += 1));
    kinds.waiting().subscribe().unsubscribe();
    const subscription = kinds.waiting().subscribe();
    await new Promise(setImmediate);
    subscription.unsubscribe();
    const next = locks.acquire('a');
    await lock.release();
    await (await next).release();
    stop();
    expect([granted, log]).toEqual([1, []]);
  });

  it('must not return a promise, whose work keeps the lock', async () => {
    const surprises = locks.bind(new Surprises());
    const refused = lastValueFrom(surprises.promise() as Observable<unknown>);
    await gate.reached;
    expect(await isHeld()).toBe(true);
    gate.open();
    await expect(refused).rejects.toThrow(
      detailed(
        "Surprises.promise did not return an Observable. Remove returns: 'observable' from its @WithLock, or return an Observable.",
      ),
    );
  });
});

describe('an async generator', () => {
  it('is still one, and locked from its first step to its end', async () => {
    const iterator = kinds.generator();
    expect(Object.prototype.toString.call(iterator)).toBe('[object AsyncGenerator]');
    expect(await isHeld()).toBe(false);
    expect((await iterator.next()).value).toBe('a');
    expect(await isHeld()).toBe(true);
    await expect(kinds.generator().next()).rejects.toThrow(LockNotAcquiredError);
    expect(await iterator.next('end')).toEqual({ done: true, value: 'a' });
    expect(await isHeld()).toBe(false);
  });

  it('runs next, throw and return in its section, whoever asks', async () => {
    const iterator = kinds.generator();
    await iterator.next();
    await locks.run('b', async () => {
      expect((await iterator.next('x')).value).toBe('a');
      expect((await iterator.throw(new Error('thrown'))).value).toBe('a');
      expect(insideOf()).toBe('b');
      expect(await iterator.return('early')).toEqual({ done: true, value: 'early' });
    });
    expect(log).toEqual(['sent x a', 'caught Error: thrown a', 'finally a true']);
    expect(await isHeld()).toBe(false);
  });

  it('gives the lock back when a loop leaves early', async () => {
    for await (const value of kinds.generator()) {
      expect(value).toBe('a');
      break;
    }
    expect(log).toEqual(['finally a true']);
    expect(await isHeld()).toBe(false);
  });

  it('may be any async iterable', async () => {
    expect(await all(kinds.iterable())).toEqual([1, 2]);
    expect(log).toEqual(['a', 'a', 'a']);
    const withoutThrow = kinds.iterable()[Symbol.asyncIterator]();
    await withoutThrow.next();
    await expect(withoutThrow.throw?.(new Error('enough'))).rejects.toThrow('enough');
    expect(await isHeld()).toBe(false);
    const surprises = locks.bind(new Surprises());
    await expect(all(surprises.value() as AsyncIterable<unknown>)).rejects.toThrow(
      detailed(
        "Surprises.value did not return an async iterable. Remove returns: 'iterable' from its @WithLock, or return an async iterable.",
      ),
    );
  });

  it('that is abandoned loses the lock after maxHold, and makes no step without it', async () => {
    const lost = new Promise((resolve) => locks.on('lost', ({ reason }) => resolve(reason)));
    const iterator = kinds.abandoned();
    await iterator.next();
    expect(await lost).toBe('max-hold');
    await (await locks.acquire('a')).release();
    await expect(iterator.next()).rejects.toThrow(LockLostError);
    expect(log).toEqual(['cleaned up']);
  });

  it('keeps the context of whoever iterates for everybody else', async () => {
    const storage = new AsyncLocalStorage<string>();
    const iterator = kinds.generator();
    await storage.run('mine', async () => {
      await iterator.next();
      expect(storage.getStore()).toBe('mine');
      expect(locks.current()).toBeUndefined();
    });
    await iterator.return('');
  });
});

describe('onLocked', () => {
  it('answers in place of a call that does not get the lock, in its kind', async () => {
    const lock = await locks.acquire('a');
    const observed = (stream: Observable<string>) => lastValueFrom(stream.pipe(toArray()));
    expect(await kinds.skipPromise()).toBeUndefined();
    expect(await kinds.fallbackPromise('7')).toBe('instead a 7');
    expect(await observed(kinds.skipObservable())).toStrictEqual([]);
    expect(await observed(kinds.fallbackObservable())).toEqual(['in', 'stead']);
    expect(await observed(kinds.fallbackValue())).toEqual(['instead']);
    expect(await all(kinds.skipGenerator())).toStrictEqual([]);
    expect(await all(kinds.fallbackGenerator())).toEqual(['in', 'stead']);
    await lock.release();
    expect(await kinds.skipPromise()).toBe('ran');
    expect(await kinds.fallbackPromise('7')).toBe('ran 7');
    expect(await observed(from(kinds.skipObservable()))).toEqual(['ran']);
    expect(await all(kinds.skipGenerator())).toEqual(['ran']);
  });

  it('is not asked about a refusal inside the method', async () => {
    await expect(kinds.innerRefusal()).rejects.toThrow(LockNotAcquiredError);
  });
});

describe('the work of run()', () => {
  it('is refused where it returns a stream, and the error has its keys', async () => {
    const stream = locks.run('order:42', async function* () {
      yield 1;
    });
    await expect(stream).rejects.toMatchObject({ code: 'LOCK_RETURN_KIND', keys: ['order:42'] });
    expect((await locks.inspect('order:42')).held).toBe(false);
  });
});
