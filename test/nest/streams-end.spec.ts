import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { LockLostError, LockService, WithLock } from 'nestjs-holdfast';
import { Observable } from 'rxjs';
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
  log = [];
  reached = deferred();
});

const isHeld = async (): Promise<boolean> => (await locks.inspect('feed')).held;

describe('an async iterable', () => {
  it('is told at once that its consumer leaves, also in a step, and its lock is free', async () => {
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

describe('an Observable', () => {
  it('ends with the loss of its lock, and its source is left', async () => {
    const lost = deferred<unknown>();
    feeds.events().subscribe({
      next: () => {
        reached.resolve();
      },
      error: lost.resolve,
    });
    await reached.promise;
    locks.lose('events');
    expect(await lost.promise).toBeInstanceOf(LockLostError);
    expect(log).toEqual(['unsubscribed']);
  });
});
