import { getEventListeners } from 'node:events';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { LockNotAcquiredError, LockReentrancyError } from '../../lib/errors.js';
import { LockRequest } from '../../lib/lease/lock-request.js';
import type { ResolvedAcquireOptions } from '../../lib/options/acquire-options.js';
import { enterNested, type Scope } from '../../lib/sections/scope.js';
import { Section } from '../../lib/sections/section.js';
import { Scheduler } from '../../lib/time/scheduler.js';
import { detailOf } from '../support/detail.js';
import { Locks } from '../support/locks.js';
import { settled, VirtualRuntime } from '../support/virtual-runtime.js';
import { stubLock, type StubFacts } from './stub-lock.js';

const service = {};
let clock: VirtualRuntime;
let scheduler: Scheduler;

beforeEach(() => {
  clock = new VirtualRuntime();
  scheduler = new Scheduler(clock);
});

type Options = Partial<ResolvedAcquireOptions> & { readonly turnWithinMs?: number };

const sectionOf = (facts: StubFacts): Section => new Section(service, stubLock(facts), undefined);

/** A call that stands in a section and asks for keys. */
function enter(
  inner: Section | undefined,
  keys: readonly string[],
  options: Options = {},
): Promise<Scope | undefined> {
  const { turnWithinMs = Infinity, ...given } = options;
  const usual: ResolvedAcquireOptions = {
    ...{ ttlMs: 1_000, waitMs: 0, autoExtend: true, maxHoldMs: Infinity, minHoldMs: 0 },
    ...{ reentrant: true, places: 1, signal: undefined, replaceWaitMs: undefined },
    release: 'when-done',
    mode: 'exclusive',
  };
  const request = new LockRequest(keys, { ...usual, ...given }, {});
  return enterNested(service, request, { withinMs: turnWithinMs, scheduler }, inner);
}

/** What a call has come to by now. */
async function outcomeOf(call: Promise<unknown>): Promise<unknown> {
  const settledAs = call.then(
    () => 'entered',
    (error: unknown) => error,
  );
  return Promise.race([settledAs, settled().then(() => 'waits')]);
}

describe('a call for keys', () => {
  it('stands in no other one’s lock outside of all sections', async () => {
    expect(await enter(undefined, ['a'])).toBeUndefined();
  });

  it('stands in no lock of another service', async () => {
    const other = new Section({}, stubLock({ keys: ['a'] }), undefined);
    expect(await enter(other, ['a'])).toBeUndefined();
  });

  it('stands in the lock of the section that holds them', async () => {
    const section = sectionOf({ keys: ['a', 'b'] });
    const scope = await enter(section, ['a']);
    expect(scope?.lock).toBe(section.lock);
  });

  it('is refused where it is not to be nested, and says so', async () => {
    const call = enter(sectionOf({ keys: ['a', 'b'] }), ['a', 'b'], { reentrant: false });
    const error = await outcomeOf(call);
    expect(error).toBeInstanceOf(LockReentrancyError);
    expect(error).toMatchObject({ code: 'LOCK_REENTRANCY', keys: ['a', 'b'] });
    expect(detailOf(error)).toBe(
      '"a", "b" is requested with reentrant: false (runOnce always sets it) inside a section that holds it: waiting would never end.',
    );
  });

  it('is refused where its section holds only some of them, and says so', async () => {
    const error = await outcomeOf(enter(sectionOf({ keys: ['a', 'c'] }), ['a', 'b']));
    expect(error).toBeInstanceOf(LockReentrancyError);
    expect(error).toMatchObject({ keys: ['a', 'b'] });
    expect(detailOf(error)).toBe(
      '"a", "b" is requested inside a section that holds only "a", "c". ' +
        'Locks that are acquired one after the other can wait for each other indefinitely: acquire all of them in the outer call.',
    );
  });
});

describe('a call for a key that its section holds in some mode', () => {
  it.each([
    { held: 'exclusive', wanted: 'exclusive' },
    { held: 'exclusive', wanted: 'shared' },
    { held: 'exclusive', wanted: 'limit:2' },
    { held: 'shared', wanted: 'shared' },
    { held: 'limit:2', wanted: 'limit:2' },
  ] as const)('goes through when it wants as $wanted what is held as $held', async (modes) => {
    const section = sectionOf({ keys: ['a'], mode: modes.held });
    expect(await outcomeOf(enter(section, ['a'], { mode: modes.wanted }))).toBe('entered');
  });

  it.each([
    { held: 'shared', wanted: 'exclusive' },
    { held: 'shared', wanted: 'limit:2' },
    { held: 'limit:2', wanted: 'shared' },
    { held: 'limit:2', wanted: 'exclusive' },
  ] as const)('is refused when it wants as $wanted what is held as $held', async (modes) => {
    const section = sectionOf({ keys: ['a'], mode: modes.held });
    const error = await outcomeOf(enter(section, ['a'], { mode: modes.wanted }));
    expect(error).toBeInstanceOf(LockReentrancyError);
    expect(error).toMatchObject({ keys: ['a'] });
    expect(detailOf(error)).toBe(
      `"a" is requested as '${modes.wanted}' inside a section that holds it as '${modes.held}', together with other callers. ` +
        'Waiting for them could last indefinitely, because one of them may do the same. Request the mode that you need in the outer call.',
    );
    expect(section.isBusy).toBe(false);
  });

  it('is refused by a whole engine too, and the reader who asked goes on', async () => {
    const locks = new Locks({ store: 'memory' });
    await locks.open();
    const value = await locks.run('a', { mode: 'shared' }, async () => {
      const asWriter = locks.run('a', () => 'never');
      await expect(asWriter).rejects.toBeInstanceOf(LockReentrancyError);
      return locks.run('a', { mode: 'shared' }, () => 'read');
    });
    expect(value).toBe('read');
    await locks.shutdown(0);
  });
});

describe('a call whose turn has not come', () => {
  let section: Section;
  let leave: () => void;

  beforeEach(async () => {
    section = sectionOf({ keys: ['a'] });
    leave = await section.takeTurn();
  });

  it('waits without a timer when it may wait indefinitely', async () => {
    const call = enter(section, ['a']);
    expect(await outcomeOf(call)).toBe('waits');
    expect(clock.timers).toBe(0);
    leave();
    expect(await outcomeOf(call)).toBe('entered');
  });

  it('is refused at once when it does not wait', async () => {
    const error = await outcomeOf(enter(section, ['a'], { turnWithinMs: 0 }));
    expect(error).toBeInstanceOf(LockNotAcquiredError);
    expect(error).toMatchObject({ keys: ['a'], retryAfterMs: 1_000 });
  });

  it('is refused when its time is over, and leaves no timer', async () => {
    const call = enter(section, ['a'], { turnWithinMs: 100 });
    const outcome = outcomeOf(call);
    expect(await outcome).toBe('waits');
    await clock.advance(100);
    const error = await outcomeOf(call);
    expect(error).toBeInstanceOf(LockNotAcquiredError);
    expect(error).toMatchObject({ keys: ['a'], retryAfterMs: 1_000 });
    expect(clock.timers).toBe(0);
  });

  it('is refused when its time is over though it has a signal, to which nothing listens then', async () => {
    const { signal } = new AbortController();
    const call = enter(section, ['a'], { turnWithinMs: 100, signal });
    expect(await outcomeOf(call)).toBe('waits');
    await clock.advance(100);
    expect(await outcomeOf(call)).toBeInstanceOf(LockNotAcquiredError);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it.each([100, Infinity])(
    'gives up with the reason of its signal, when it may wait for %s ms',
    async (turnWithinMs) => {
      const controller = new AbortController();
      const call = enter(section, ['a'], { turnWithinMs, signal: controller.signal });
      expect(await outcomeOf(call)).toBe('waits');
      const reason = new Error('the client went away');
      controller.abort(reason);
      expect(await outcomeOf(call)).toBe(reason);
      expect(clock.timers).toBe(0);
    },
  );

  it('gives up at once when its signal has aborted before', async () => {
    const reason = new Error('the client went away');
    const call = enter(section, ['a'], { turnWithinMs: 100, signal: AbortSignal.abort(reason) });
    expect(await outcomeOf(call)).toBe(reason);
  });

  it('leaves neither a timer nor a listener once it has come', async () => {
    const { signal } = new AbortController();
    const call = enter(section, ['a'], { turnWithinMs: 100, signal });
    expect(await outcomeOf(call)).toBe('waits');
    expect(clock.timers).toBe(1);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    leave();
    expect(await outcomeOf(call)).toBe('entered');
    expect(clock.timers).toBe(0);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});
