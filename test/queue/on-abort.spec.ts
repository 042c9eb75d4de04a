import { describe, expect, it } from '@jest/globals';
import { getEventListeners } from 'node:events';
import { anyOf, onAbort } from '../../lib/queue/on-abort.js';
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

function controlled(): { readonly signal: AbortSignal; readonly abort: (reason?: Error) => void } {
  const controller = new AbortController();
  return {
    signal: controller.signal,
    abort: (reason) => {
      controller.abort(reason);
    },
  };
}
