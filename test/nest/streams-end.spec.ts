import { getEventListeners } from 'node:events';
import { Logger } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { LockLostError, LockService, WithLock } from 'nestjs-holdfast';
import { concat, firstValueFrom, from, lastValueFrom, map, NEVER, Observable, of } from 'rxjs';
import { deferred } from '../support/eventually.js';

let log: string[] = [];
let reached = deferred();

/** What a message broker's client gives: it ends the step that is under way when it is left. */
class Feed implements AsyncIterableIterator<number> {
  #next = deferred<IteratorResult<number>>();

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<number>> {
    log.push('waits');
    reached.resolve();
    return this.#next.promise;
  }

  return(): Promise<IteratorResult<number>> {
    log.push('left');
    this.#next.resolve({ done: true, value: undefined });
    return Promise.resolve({ done: true, value: undefined });
  }
}

class Feeds {
  @WithLock('feed', { returns: 'iterable', wait: '20s' })
  broker(): AsyncIterableIterator<number> {
    log.push('begins');
    return new Feed();
  }

  /** Tells that it was called before its first step is asked for. */
  @WithLock('early', { returns: 'iterable' })
  early(): AsyncIterableIterator<number> {
    reached.resolve();
    return new Feed();
  }

  /** Its steps cannot be ended. */
  @WithLock('stuck')
  async *stuck(): AsyncGenerator<number> {
    reached.resolve();
    await new Promise(() => undefined);
    yield 1;
  }

  @WithLock('stolen', { returns: 'observable' })
  stolen(): Observable<number> {
    return from(locks.forceRelease('stolen')).pipe(map(() => 1));
  }

  @WithLock('lost-at-once', { returns: 'observable' })
  lostAtOnce(): Observable<number> {
    return new Observable(() => {
      locks.lose('lost-at-once');
      return () => void log.push('unsubscribed');
    });
  }

  @WithLock('outer', { returns: 'observable' })
  inner(): Observable<number> {
    return concat(of(1), NEVER);
  }

  @WithLock('rude', { returns: 'observable' })
  rude(): Observable<number> {
    return new Observable((subscriber) => {
      subscriber.next(1);
      return () => {
        throw new Error('it does not let itself be left');
      };
    });
  }

  @WithLock('events', { returns: 'observable' })
  events(): Observable<number> {
    return new Observable((subscriber) => {
      subscriber.next(1);
      return () => void log.push('unsubscribed');
    });
  }
}

let locks: LockService;
let feeds: Feeds;

beforeAll(async () => {
  locks = new LockService({ store: 'memory', ttl: '2s' });
  await locks.open();
  feeds = locks.bind(new Feeds());
});
afterAll(() => locks.shutdown(0));
afterEach(() => {
  Logger.overrideLogger(false);
  log = [];
  reached = deferred();
});

const isHeld = async (): Promise<boolean> => (await locks.inspect('feed')).held;

describe('an async iterable', () => {
  it('ends at once when its consumer leaves, also in a step, and its lock is free', async () => {
    const iterator = feeds.broker()[Symbol.asyncIterator]();
    const step = iterator.next();
    await reached.promise;
    expect(log).toEqual(['begins', 'waits']);
    expect(await iterator.return?.(7)).toEqual({ done: true, value: 7 });
    expect(await step).toEqual({ done: true, value: undefined });
    expect(log).toEqual(['begins', 'waits', 'left']);
    expect(await isHeld()).toBe(false);
  });

  it('leaves the line when its consumer leaves, and does not begin', async () => {
    const lock = await locks.acquire('feed');
    const iterator = feeds.broker()[Symbol.asyncIterator]();
    const step = iterator.next();
    await iterator.return?.();
    expect(await step).toEqual({ done: true, value: undefined });
    await lock.release();
    expect(await isHeld()).toBe(false);
    expect(log).toEqual([]);
  });

  it('does not begin when its consumer leaves as its lock is granted', async () => {
    const iterator = feeds.broker()[Symbol.asyncIterator]();
    const stop = locks.on('acquired', () => {
      stop();
      void iterator.return?.();
    });
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    expect(await isHeld()).toBe(false);
    expect(log).toEqual([]);
  });

  it('leaves the line when its consumer throws into it, and does not begin', async () => {
    const lock = await locks.acquire('feed');
    const iterator = feeds.broker()[Symbol.asyncIterator]();
    const step = iterator.next();
    await expect(iterator.throw?.(new Error('enough'))).rejects.toThrow('enough');
    expect(await step).toEqual({ done: true, value: undefined });
    await lock.release();
    expect(await isHeld()).toBe(false);
    expect(log).toEqual([]);
  });

  it('ends also when its consumer leaves between the call of the method and its first step', async () => {
    const iterator = feeds.early()[Symbol.asyncIterator]();
    const step = iterator.next();
    await reached.promise;
    expect(await iterator.return?.(7)).toEqual({ done: true, value: 7 });
    expect((await step).done).toBe(true);
    expect(log).toContain('left');
    expect((await locks.inspect('early')).held).toBe(false);
  });

  it('whose step never ends tells its consumer of the loss', async () => {
    const step = feeds.stuck().next();
    await reached.promise;
    locks.lose('stuck');
    await expect(step).rejects.toThrow(LockLostError);
  });

  it('ends in the step at which its lock is lost', async () => {
    const iterator = feeds.broker()[Symbol.asyncIterator]();
    const step = iterator.next();
    await reached.promise;
    expect(log).toEqual(['begins', 'waits']);
    locks.lose('feed');
    await expect(step).rejects.toThrow(LockLostError);
    expect(log).toEqual(['begins', 'waits', 'left']);
  });
});

/** Loses the lock after the first event: what the subscriber gets then. */
async function lossOf(events: Observable<number>, key: string): Promise<unknown> {
  const lost = deferred<unknown>();
  events.subscribe({
    next: () => {
      reached.resolve();
    },
    error: lost.resolve,
  });
  await reached.promise;
  locks.lose(key);
  return lost.promise;
}

describe('an Observable', () => {
  it('ends with the loss of its lock, and its source is left', async () => {
    expect(await lossOf(feeds.events(), 'events')).toBeInstanceOf(LockLostError);
    expect(log).toEqual(['unsubscribed']);
  });

  it('fails when its lock is found lost at its end', async () => {
    await expect(lastValueFrom(feeds.stolen())).rejects.toThrow(LockLostError);
  });

  it('fails when its lock is lost while it is subscribed to', async () => {
    await expect(lastValueFrom(feeds.lostAtOnce())).rejects.toThrow(LockLostError);
    expect(log).toEqual(['unsubscribed']);
  });

  it('tells of the loss also where its source throws when it is left, and that is logged', async () => {
    const errors: unknown[] = [];
    Logger.overrideLogger({
      log: () => undefined,
      warn: () => undefined,
      error: (message: unknown) => errors.push(message),
    });
    expect(await lossOf(feeds.rude(), 'rude')).toBeInstanceOf(LockLostError);
    expect(errors).toEqual(['The Observable of Feeds.rude threw when its lock was lost']);
  });

  it('gives its lock back also where its source throws when it is unsubscribed from', async () => {
    const locks2 = new LockService({ store: 'memory' });
    await locks2.open();
    const own = locks2.bind(new Feeds());
    const released = new Promise((resolve) => locks2.on('released', resolve));
    const subscription = own.rude().subscribe(() => {
      reached.resolve();
    });
    await reached.promise;
    expect(() => {
      subscription.unsubscribe();
    }).toThrow('it does not let itself be left');
    await released;
    await locks2.shutdown(0);
  });

  it('leaves nothing at the signal of an outer lock when it ends while it is subscribed to', async () => {
    await locks.run('outer', async (lock) => {
      const before = getEventListeners(lock.signal, 'abort').length;
      for (let calls = 0; calls < 5; calls += 1) await firstValueFrom(feeds.inner());
      expect(getEventListeners(lock.signal, 'abort')).toHaveLength(before);
    });
  });
});
