import { describe, expect, it } from '@jest/globals';
import { getEventListeners } from 'node:events';
import { anyOf, endOf, onAbort, pause } from '../../lib/queue/on-abort.js';
import { Scheduler } from '../../lib/time/scheduler.js';
import { deferred } from '../support/eventually.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';
import { scriptedService } from '../support/scripted-service.js';
import { heldFor } from '../support/scripted-store.js';

describe('one signal', () => {
  it('gets one listener, however many callers wait with it, and none when they have gone', async () => {
    const { clock, store, locks } = scriptedService();
    store.onAcquire = () => heldFor(60_000);
    const { signal, abort } = controlled();
    const wait = (ms: number): Promise<unknown> =>
      locks.acquire('key', { wait: ms, signal }).catch((error: unknown) => error);
    const callers = Array.from({ length: 50 }, () => wait(1_000));
    await clock.advance(500);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    await clock.advance(1_000);
    await Promise.all(callers);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);

    const reason = new Error('enough');
    const later = Array.from({ length: 50 }, () => wait(60_000));
    await clock.advance(500);
    abort(reason);
    expect(new Set(await Promise.all(later))).toEqual(new Set([reason]));
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    await locks.shutdown(0);
  });

  it('tells everybody who still listens, and nobody else', () => {
    const { signal, abort } = controlled();
    const told: string[] = [];
    const stop = onAbort(signal, () => told.push('first'));
    onAbort(signal, () => {
      told.push('second');
      stopThird();
    });
    const stopThird = onAbort(signal, () => told.push('third'));
    onAbort(signal, () => told.push('fourth'));
    stop();
    stop();
    abort();
    expect(told).toEqual(['second', 'fourth']);
  });

  it('is heard by who comes after everybody else has gone', () => {
    const { signal, abort } = controlled();
    const told: string[] = [];
    const stop = onAbort(signal, () => told.push('gone'));
    stop();
    onAbort(signal, () => told.push('new'));
    stop();
    abort();
    expect(told).toEqual(['new']);
  });
});

describe('a signal that has aborted', () => {
  it('keeps none of our listeners, though nobody has stopped listening', () => {
    const { signal, abort } = controlled();
    onAbort(signal, () => undefined);
    abort();
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });
});

describe('a signal that aborts with others', () => {
  it('does so with the first of them, and with its reason', () => {
    const [one, other] = [controlled(), controlled()];
    const { signal } = anyOf([one.signal, other.signal]);
    expect(signal.aborted).toBe(false);
    const reason = new Error('enough');
    other.abort(reason);
    expect(signal.reason).toBe(reason);
    one.abort(new Error('too late'));
    expect(signal.reason).toBe(reason);
  });

  it('has aborted when one of them has before', () => {
    const { signal, abort } = controlled();
    const reason = new Error('before');
    abort(reason);
    expect(anyOf([controlled().signal, signal]).signal.reason).toBe(reason);
  });

  it('keeps no listener on them, and hears of them no more, once it is unlinked', () => {
    const [one, other] = [controlled(), controlled()];
    const { signal, unlink } = anyOf([one.signal, other.signal]);
    unlink();
    for (const source of [one, other]) {
      expect(getEventListeners(source.signal, 'abort')).toHaveLength(0);
      source.abort(new Error('gone'));
    }
    expect(signal.aborted).toBe(false);
  });
});

describe('work that a signal may cut short', () => {
  it('settles as it does itself, and leaves no listener', async () => {
    const { signal } = controlled();
    const error = new Error('mine');
    await expect(endOf(Promise.resolve('done'), signal)).resolves.toBe('done');
    await expect(endOf(Promise.reject(error), signal)).rejects.toBe(error);
    const work = deferred<string>();
    const ended = endOf(work.promise, signal);
    work.resolve('done later');
    await expect(ended).resolves.toBe('done later');
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  it('is waited for no more once the signal has aborted, before or meanwhile', async () => {
    const { signal, abort } = controlled();
    const { promise: endless } = deferred<string>();
    const ended = endOf(endless, signal);
    abort();
    await expect(ended).resolves.toBeUndefined();
    await expect(endOf(endless, signal)).resolves.toBeUndefined();
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });
});

describe('a pause that a signal may cut short', () => {
  const setUp = () => {
    const runtime = new VirtualRuntime();
    const { signal, abort } = controlled();
    let isOver = false;
    void pause(new Scheduler(runtime), 1_000, signal).then(() => {
      isOver = true;
    });
    return { runtime, signal, abort, isOver: () => isOver };
  };

  it('ends after its time, and leaves neither a timer nor a listener', async () => {
    const { runtime, signal, isOver } = setUp();
    await runtime.advance(900);
    expect(isOver()).toBe(false);
    await runtime.advance(100);
    expect(isOver()).toBe(true);
    expect(runtime.timers).toBe(0);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  it('ends with the signal, also if that has aborted before', async () => {
    const { runtime, signal, abort, isOver } = setUp();
    abort();
    await runtime.advance(0);
    expect(isOver()).toBe(true);
    expect(runtime.timers).toBe(0);
    await pause(new Scheduler(runtime), 1_000, signal);
    expect(runtime.timers).toBe(0);
  });
});

function controlled(): { readonly signal: AbortSignal; readonly abort: (reason?: Error) => void } {
  const controller = new AbortController();
  return {
    signal: controller.signal,
    abort: (reason) => {
      controller.abort(reason);
    },
  };
}
