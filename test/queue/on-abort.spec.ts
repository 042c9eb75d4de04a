import { describe, expect, it } from '@jest/globals';
import { getEventListeners } from 'node:events';
import { onAbort } from '../../lib/queue/on-abort.js';
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

function controlled(): { readonly signal: AbortSignal; readonly abort: (reason?: Error) => void } {
  const controller = new AbortController();
  return {
    signal: controller.signal,
    abort: (reason) => {
      controller.abort(reason);
    },
  };
}
