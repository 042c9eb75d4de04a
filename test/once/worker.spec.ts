import { describe, expect, it } from '@jest/globals';
import { LockingWorker } from '../../lib/worker/index.js';
import { NonRetryableError } from '../../lib/once/attempt.js';
import type { LockingWorkerOptions } from '../../lib/worker/index.js';
import { heldFor } from '../support/scripted-store.js';
import { settled } from '../support/virtual-runtime.js';
import { scriptedOnce } from './scripted-once.js';

function setUp(options: Partial<LockingWorkerOptions> = {}) {
  const engine = scriptedOnce();
  const worker = new LockingWorker(engine.locks, { lockKey: 'import', ...options });
  const emitted: unknown[][] = [];
  for (const event of ['acquired', 'locked', 'done', 'exhausted', 'error'] as const)
    worker.on(event, (...args: unknown[]) => void emitted.push([event, ...args]));
  const said: string[] = [];
  worker.on('status', (text) => void said.push(text));
  return { ...engine, worker, emitted, said };
}

/** At work: `done()` or `fail()` is awaited. */
async function atWork(options: Partial<LockingWorkerOptions> = {}) {
  const all = setUp(options);
  const run = all.worker.acquire();
  await settled();
  return { ...all, run };
}

describe('a worker', () => {
  it('asks for the work with its options, and is at work until it says that it is done', async () => {
    const { store, once, worker, run, emitted, said } = await atWork({
      lockTimeout: '2s',
      maxAttempts: 1,
      keepDone: '1m',
    });
    expect(store.acquired).toMatchObject([{ key: 'import', ttlMs: 2_000 }]);
    expect(once.begun).toMatchObject([{ attempts: 1, keepMs: 60_000 }]);
    expect(emitted).toEqual([['acquired', 1, true]]);
    expect(worker.signal?.aborted).toBe(false);
    expect(worker.acquire()).toBe(run);
    await worker.done({ rows: 3 });
    await run;
    expect(once.finished).toMatchObject([{ end: 'done', text: '{"rows":3}' }]);
    expect(emitted.slice(1)).toEqual([['done', { rows: 3 }]]);
    expect(said).toEqual(['acquired, attempt 1', 'done, in attempt 1']);
    expect(worker.signal).toBeUndefined();
  });

  it('can ask again afterwards', async () => {
    const { once, worker, run, emitted } = await atWork();
    await worker.done();
    await run;
    once.onBegin = () => ({ status: 'done', attempts: 1, value: '7' });
    await worker.acquire();
    expect(emitted.at(-1)).toEqual(['done', 7]);
  });

  it('does nothing unless it is at work', async () => {
    const { worker, once, emitted } = setUp();
    await worker.done();
    await worker.fail(new Error('mine'));
    await worker.close();
    expect(once.finished).toEqual([]);
    expect(emitted).toEqual([]);
  });

  it('says that it has failed, and emits its error', async () => {
    const { once, worker, run, emitted, said } = await atWork();
    const error = new NonRetryableError('mine');
    await worker.fail(error);
    await run;
    expect(once.finished).toMatchObject([{ end: 'final', text: 'mine' }]);
    expect(emitted.at(-1)).toEqual(['error', error]);
    expect(said.at(-1)).toBe('the attempt failed');
  });

  it('has a word for it without an error of its own', async () => {
    const { once, worker, emitted } = await atWork();
    await worker.fail();
    expect(once.finished).toMatchObject([{ end: 'failed', text: 'The worker has failed' }]);
    expect(emitted.at(-1)).toEqual(['error', new Error('The worker has failed')]);
  });

  it('rejects with its error where nobody listens to it', async () => {
    const { worker, run } = await atWork();
    worker.removeAllListeners('error');
    const error = new Error('mine');
    const outcomes = await Promise.allSettled([run, worker.fail(error)]);
    expect(outcomes).toMatchObject([{ reason: error }, { reason: error }]);
  });

  it('that is closed fails its attempt, without an error event', async () => {
    const { once, worker, run, emitted, said } = await atWork();
    const { signal } = worker;
    await worker.close();
    await run;
    expect(signal?.reason).toEqual(new Error('The worker was closed'));
    expect(once.finished).toMatchObject([{ end: 'failed', text: 'The worker was closed' }]);
    expect(emitted).toEqual([['acquired', 1, false]]);
    expect(said.at(-1)).toBe('closed');
  });

  it('stands by while somebody else is at it, and stops when it is closed', async () => {
    const { store, once, worker, emitted, said, clock } = setUp();
    store.onAcquire = () => heldFor(1_000, 'import');
    once.onBegin = () => ({ status: 'lost', attempts: 1 });
    const run = worker.acquire();
    await clock.advance(5_000);
    expect(emitted).toEqual([['locked']]);
    expect(said).toEqual(['another caller does it: standing by']);
    const closing = worker.close();
    await clock.advance(1);
    await closing;
    await run;
    expect(emitted).toEqual([['locked']]);
    expect(said.at(-1)).toBe('closed');
    expect(clock.timers).toBe(0);
  });

  it('stands by anew after an hour', async () => {
    const { store, once, worker, clock, emitted } = setUp({ lockTimeout: '1m' });
    store.onAcquire = () => heldFor(60_000, 'import');
    once.onBegin = () => ({ status: 'lost', attempts: 1 });
    const run = worker.acquire();
    await clock.advance(3_599_000);
    // Of the first refusal only.
    expect(once.begun).toHaveLength(1);
    await clock.advance(61_000);
    expect(once.begun).toHaveLength(2);
    expect(emitted).toEqual([['locked']]);
    once.onBegin = () => ({ status: 'exhausted', attempts: 3 });
    await clock.advance(3_700_000);
    await run;
    expect(emitted).toEqual([['locked'], ['exhausted']]);
  });

  it('says that another one has taken over', async () => {
    const { once, worker, emitted, said } = await atWork();
    once.onFinish = () => ({ status: 'superseded' });
    await worker.done();
    expect(emitted.at(-1)).toEqual([
      'error',
      new Error('The lock was lost, and another worker has taken over'),
    ]);
    expect(said.slice(1)).toEqual(['another attempt has begun', 'the attempt failed']);
  });

  it('says that the work is exhausted', async () => {
    const { once, worker, emitted, said } = setUp();
    once.onBegin = () => ({ status: 'exhausted', attempts: 3 });
    await worker.acquire();
    expect(emitted).toEqual([['exhausted']]);
    expect(said).toEqual(['exhausted, in attempt 3']);
  });

  it('does not begin when it was closed before its turn came', async () => {
    const { once, worker, emitted } = setUp();
    once.onBegin = () => {
      void worker.close();
      return { status: 'begun', attempt: 1 };
    };
    await worker.acquire();
    expect(emitted).toEqual([]);
    expect(once.finished).toMatchObject([{ end: 'failed' }]);
  });
});
