import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { LockService, NonRetryableError } from 'nestjs-holdfast';
import { LockingWorker } from 'nestjs-holdfast/worker';
import { eventually, until } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';

const OPTIONS = { lockKey: 'import', maxAttempts: 3 } as const;
const EVENTS = ['acquired', 'locked', 'done', 'exhausted', 'error'] as const;

let server: RedisServer;
let services: LockService[];
let workers: LockingWorker[];
/** What each worker has emitted, in order. */
let emitted: string[][];

beforeAll(async () => {
  server = await RedisServer.start();
});

beforeEach(async () => {
  await server.command('FLUSHALL');
  services = [1, 2, 3].map(() => new LockService({ redis: server.url }));
  workers = services.map((locks) => new LockingWorker(locks, OPTIONS));
  emitted = workers.map((worker) => {
    const list: string[] = [];
    for (const event of EVENTS)
      worker.on(
        event,
        (...args: unknown[]) => void list.push([event, ...args.map(textOf)].join(' ').trim()),
      );
    return list;
  });
});

afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.close()));
  await Promise.all(services.map((locks) => locks.shutdown(0)));
});

afterAll(() => server.stop());

const textOf = (value: unknown): string =>
  value instanceof Error ? String(value) : (JSON.stringify(value) ?? '');

/** The first is at work, the two others stand by, in their order. */
async function atWork(): Promise<readonly [LockingWorker, LockingWorker, LockingWorker]> {
  const [first, second, third] = workers as [LockingWorker, LockingWorker, LockingWorker];
  for (const [worker, event] of [
    [first, 'acquired'],
    [second, 'locked'],
    [third, 'locked'],
  ] as const) {
    const seen = until(worker, event);
    void worker.acquire();
    await seen;
    if (event === 'locked') await inLine(workers.indexOf(worker));
  }
  return [first, second, third];
}

/** So many stand in the line of the lock. */
async function inLine(count: number): Promise<void> {
  await eventually(async () => (await server.command('ZCARD', '{lock:import}:queue')) === count);
}

describe('three workers', () => {
  it('of which one does the work; all hear that it is done', async () => {
    const [first, second, third] = await atWork();
    expect(first.signal?.aborted).toBe(false);
    const ended = Promise.all([second.acquire(), third.acquire()]);
    await first.done({ rows: 3 });
    await ended;
    expect(emitted).toEqual([
      ['acquired 1 false', 'done {"rows":3}'],
      ['locked', 'done {"rows":3}'],
      ['locked', 'done {"rows":3}'],
    ]);
    expect(first.signal).toBeUndefined();
  });

  it('take over from each other when one fails, until no attempt is left', async () => {
    const [first, second, third] = await atWork();
    const secondIsAtWork = until(second, 'acquired');
    await first.fail(new Error('first'));
    await secondIsAtWork;
    const thirdIsAtWork = until(third, 'acquired');
    await second.fail();
    await thirdIsAtWork;
    await third.fail(new Error('third'));
    await first.acquire();
    expect(emitted).toEqual([
      ['acquired 1 false', 'error Error: first', 'exhausted'],
      ['locked', 'acquired 2 false', 'error Error: The worker has failed'],
      ['locked', 'acquired 3 true', 'error Error: third'],
    ]);
  });

  it('stop after a NonRetryableError', async () => {
    const [first, second, third] = await atWork();
    const ended = Promise.all([second.acquire(), third.acquire()]);
    await first.fail(new NonRetryableError('never'));
    await ended;
    expect(emitted.slice(1)).toEqual([
      ['locked', 'exhausted'],
      ['locked', 'exhausted'],
    ]);
  });

  it('let one go that closes: standing by, or at work', async () => {
    const [first, second, third] = await atWork();
    await second.close();
    const thirdIsAtWork = until(third, 'acquired');
    const { signal } = first;
    await first.close();
    expect(signal?.aborted).toBe(true);
    await thirdIsAtWork;
    await third.done();
    expect(emitted).toEqual([
      ['acquired 1 false'],
      ['locked'],
      ['locked', 'acquired 2 false', 'done'],
    ]);
  });

  it('hear that the work was taken over from one that lost its lock', async () => {
    const [first, second] = await atWork();
    const secondIsAtWork = until(second, 'acquired');
    await services[2]?.forceRelease('import');
    await secondIsAtWork;
    await first.done();
    expect(emitted[0]).toEqual([
      'acquired 1 false',
      'error Error: The lock was lost, and another worker has taken over',
    ]);
    await second.done();
  });

  it('say in words what happens', async () => {
    const texts: string[] = [];
    workers[0]?.on('status', (text) => texts.push(text));
    const [first] = await atWork();
    await first.done();
    expect(texts).toEqual(['acquired, attempt 1', 'done, in attempt 1']);
  });

  it('do nothing when they are told that work is done which they are not at', async () => {
    const [first, , third] = await atWork();
    await third.done();
    await third.fail();
    expect(third.signal).toBeUndefined();
    await first.done();
    await first.done();
  });
});

describe('a worker without a listener for errors', () => {
  it('rejects with what went wrong', async () => {
    const worker = new LockingWorker(services[0]!, OPTIONS);
    const failure = new Error('of the work');
    worker.on('acquired', () => void worker.fail(failure).catch(() => undefined));
    await expect(worker.acquire()).rejects.toBe(failure);
  });
});
