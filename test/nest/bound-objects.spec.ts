import { Readable } from 'node:stream';
import { Logger } from '@nestjs/common';
import { describe, expect, it } from '@jest/globals';
import {
  LockLostError,
  LockReentrancyError,
  LockService,
  RunOnce,
  WithLock,
  type LockEvents,
} from 'nestjs-holdfast';
import { createTestLocks } from 'nestjs-holdfast/testing';
import { scriptedService, watchRejections } from '../support/scripted-service.js';

const fault = new TypeError('mine');
const stream = Readable.from(['row']);

class Orders {
  @WithLock('order:<id>')
  async pay(id: string): Promise<string> {
    return id;
  }

  @WithLock(() => {
    throw fault;
  })
  async keyless(): Promise<void> {}

  @WithLock('stream')
  async stream(lose: () => void): Promise<Readable> {
    lose();
    return stream;
  }
}

class Invoices {
  @RunOnce('invoice:<id>', { keepValue: true })
  async send(id: string): Promise<string | undefined> {
    return id;
  }
}

const newService = (name?: string | symbol): LockService =>
  new LockService({ store: 'memory' }, { name });

describe('a method of a bound object', () => {
  it('has no prefix before its key where only a TTL is given', async () => {
    const { locks, testLocks } = createTestLocks();
    await locks.bind(new Orders(), { ttl: '1m' }).pay('7');
    expect(testLocks.acquired).toEqual(['order:7']);
  });

  it('rejects with what its key function throws', async () => {
    const { locks } = createTestLocks();
    await expect(locks.bind(new Orders()).keyless()).rejects.toBe(fault);
  });

  it('refuses a Promise for a key or for places, and rejects for no other reason if that does', async () => {
    const rejections = watchRejections();
    const fails = async (): Promise<never> => await Promise.reject(fault);
    class Late {
      @WithLock(fails as never)
      async key(): Promise<void> {}

      @WithLock((() => [fails(), fails()]) as never)
      async keys(): Promise<void> {}

      @WithLock('key', { limit: 3, places: fails as never })
      async places(): Promise<void> {}
    }
    const { locks } = createTestLocks();
    const late = locks.bind(new Late());
    const detail = expect.stringContaining('a Promise');
    await expect(late.key()).rejects.toMatchObject({ code: 'LOCK_KEY_INVALID', detail });
    await expect(late.keys()).rejects.toMatchObject({ code: 'LOCK_KEY_INVALID' });
    await expect(late.places()).rejects.toThrow('must be a whole number');
    await rejections.expectNone();
  });

  it('leaves the stream of its result open when its lock is lost: it may have other uses', async () => {
    const { locks } = createTestLocks();
    const call = locks.bind(new Orders()).stream(() => locks.lose('stream'));
    await expect(call).rejects.toBeInstanceOf(LockLostError);
    expect(stream.destroyed).toBe(false);
  });

  it('may lock over several masters, unless its work is to be done once', () => {
    const locks = new LockService({ redis: ['redis://a', 'redis://b', 'redis://c'] });
    expect(() => locks.bind(new Orders())).not.toThrow();
    expect(() => locks.bind(new Invoices())).toThrow(
      /^@RunOnce on Invoices\.send: .* needs one Redis/,
    );
  });
});

describe('a method of a bound object with @RunOnce', () => {
  it('refuses to be called inside a section that holds its key, also when the work was done', async () => {
    const { locks, testLocks } = createTestLocks();
    const invoices = locks.bind(new Invoices());
    await testLocks.finishWork('invoice:7', 'sent');
    expect(await invoices.send('7')).toBe('sent');
    const nested = locks.run('invoice:7', () => invoices.send('7'));
    await expect(nested).rejects.toBeInstanceOf(LockReentrancyError);
  });

  it('names key and fencing token of a lock that it holds, where another attempt has begun', async () => {
    const { locks, store } = scriptedService();
    const once = {
      begin: async () => ({ status: 'begun', attempt: 1 }),
      finish: async () => ({ status: 'superseded' }),
    };
    Object.assign(store, { once });
    const tokens: unknown[] = [];
    locks.on('acquired', ({ fencingToken }) => tokens.push(fencingToken));
    const error: unknown = await locks
      .bind(new Invoices())
      .send('7')
      .catch((thrown: unknown) => thrown);
    expect(tokens).toEqual([expect.any(Number)]);
    expect(error).toMatchObject({
      ...{ code: 'LOCK_LOST', reason: 'stolen', keys: ['invoice:7'], fencingToken: tokens[0] },
      message: expect.stringContaining('invoice:<id>'),
    });
  });
});

describe('a LockService', () => {
  it.each([
    ['jobs', 'jobs'],
    [Symbol('jobs'), 'jobs'],
    [Symbol(), 'symbol'],
    [undefined, undefined],
  ])('named %p is %p in events', async (name, service) => {
    const locks = newService(name);
    const acquired: LockEvents['acquired'][] = [];
    locks.on('acquired', (event) => acquired.push(event));
    await locks.run('a', () => undefined);
    expect(acquired.map((event) => event.service)).toStrictEqual([service]);
    await locks.shutdown(0);
  });

  it('logs under the name Holdfast', async () => {
    const logged: unknown[] = [];
    const warn = (_message: unknown, context: unknown): void => void logged.push(context);
    Logger.overrideLogger({ log: () => undefined, error: () => undefined, warn });
    const locks = newService();
    await expect(locks.run('a', () => locks.lose('a'))).rejects.toThrow();
    expect(logged).toEqual(['Holdfast']);
    await locks.shutdown(0);
  });
});
