import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockService } from 'nestjs-holdfast';
import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';
import type { OnceStore } from '../../lib/store/once-store.js';
import { defaultMaxListeners, getEventListeners } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { storeOption } from '../../lib/options/location.js';

const TWELVE = Array.from({ length: 12 }, (_, index) => `k${index}`);

/** Does not take what attempts have done at the first try. */
class StoreWithOutage extends MemoryLockStore {
  readonly #refused = new Set<string>();

  override get once(): OnceStore {
    const once = super.once;
    const refused = this.#refused;
    return {
      begin: (request) => once.begin(request),
      keep: (request) => once.keep(request),
      finish: async (request) => {
        if (refused.has(request.key)) return once.finish(request);
        refused.add(request.key);
        return { status: 'unavailable', nodes: [], transient: true };
      },
    };
  }
}

describe('no signal has more listeners than Node takes for a leak', () => {
  const { addEventListener } = EventTarget.prototype;
  let most = 0;
  let locks: LockService;

  beforeEach(() => {
    most = 0;
    EventTarget.prototype.addEventListener = function (this: EventTarget, ...args) {
      addEventListener.apply(this, args);
      most = Math.max(most, getEventListeners(this, 'abort').length);
    };
    locks = new LockService({ store: storeOption(new StoreWithOutage()) });
  });
  afterEach(async () => {
    await locks.shutdown(0);
    EventTarget.prototype.addEventListener = addEventListener;
  });

  it.each([
    ['its own signal', undefined],
    ['a signal of theirs', new AbortController().signal],
  ])('with twelve nested calls side by side, with %s', async (_what, given) => {
    const results = await locks.run('k', (lock) => {
      const signal = given ?? lock.signal;
      const nested = (wait: number | undefined): Promise<unknown>[] =>
        TWELVE.map(() => locks.run('k', { signal, ...(wait && { wait }) }, () => nextTurn()));
      return Promise.all([...nested(undefined), ...nested(60_000)]);
    });
    expect(results).toHaveLength(24);
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(defaultMaxListeners);
  });

  it('with twelve calls that wait with one signal', async () => {
    const { signal } = new AbortController();
    await Promise.all(TWELVE.map(() => locks.run('k', { signal }, () => nextTurn())));
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(defaultMaxListeners);
  });

  it('with twelve attempts whose end the store does not take at once', async () => {
    const done = await Promise.all(TWELVE.map((key) => locks.runOnce(key, () => nextTurn(key))));
    expect(done.map(({ outcome }) => outcome)).toEqual(TWELVE.map(() => 'completed'));
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(defaultMaxListeners);
  });
});
