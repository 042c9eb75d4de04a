import { AsyncResource } from 'node:async_hooks';
import { EventEmitter, once } from 'node:events';
import { afterAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  LockLostError,
  LockNotAcquiredError,
  LockReentrancyError,
  LockService,
  LockStoreUnavailableError,
  type RunOptions,
  type TryRunResult,
} from 'nestjs-holdfast';
import { detailed } from '../support/detail.js';
import { deferred, type Deferred } from '../support/eventually.js';
import { scriptedService, watchRejections } from '../support/scripted-service.js';
import { heldFor, OUTAGE } from '../support/scripted-store.js';
import { settled, type VirtualRuntime } from '../support/virtual-runtime.js';
import type { LockHandle } from '../../lib/lease/lock-handle.js';
import { storeOption } from '../../lib/options/location.js';

const rejections = watchRejections();
afterAll(() => rejections.expectNone());

let clock: VirtualRuntime;
let locks: LockService;
let service: ReturnType<typeof scriptedService>;
/** Tokens in the store. */
let held: Map<string, string>;

beforeEach(() => {
  service = scriptedService();
  ({ clock, locks } = service);
  const { store } = service;
  held = new Map();
  let fencingToken = 0;
  store.onAcquire = ({ key, token }) => {
    if (held.has(key)) return heldFor(1_000, key);
    held.set(key, token);
    return { status: 'granted', fencingToken: (fencingToken += 1) };
  };
  store.onRelease = ({ key, token }) => {
    if (held.get(key) !== token) return { status: 'not-held' };
    held.delete(key);
    store.reportReleased(key);
    return { status: 'released' };
  };
});

/** Work that says in `log` when it begins and ends, and ends when the test says so. */
function work(name: string, log: string[]): { run: () => Promise<string>; gate: Deferred<void> } {
  const gate = deferred();
  return {
    gate,
    async run() {
      log.push(`${name} begins`);
      await gate.promise;
      log.push(`${name} ends`);
      return name;
    },
  };
}

describe('run', () => {
  it('holds the lock while the work runs, gives it back, and returns what the work returned', async () => {
    const value = await locks.run('key', async (lock) => {
      expect(held.has('key')).toBe(true);
      await settled();
      lock.assertHeld();
      return 'value';
    });
    expect(value).toBe('value');
    expect(held.size).toBe(0);
  });

  it('gives the lock back when the work throws, also when it throws synchronously', async () => {
    const error = new Error('of the work');
    const failing = locks.run('key', () => {
      throw error;
    });
    await expect(failing).rejects.toBe(error);
    expect(error.cause).toBeUndefined();
    expect(held.size).toBe(0);
  });

  it('TR-14 lets neither result nor error be replaced by a release that fails', async () => {
    service.store.onRelease = () => OUTAGE;
    await expect(locks.run('a', () => 'value')).resolves.toBe('value');
    const error = new Error('of the work');
    await expect(locks.run('b', () => Promise.reject(error))).rejects.toBe(error);
  });

  it('TR-17 throws a LockLostError when the lock was lost while the work ran', async () => {
    const running = locks.run('key', async (lock) => {
      service.store.onExtend = () => ({ status: 'lost', reason: 'stolen' });
      await clock.advance(500);
      expect(lock.signal.aborted).toBe(true);
      return 'value';
    });
    await expect(running).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'stolen' });
  });

  it('throws a LockLostError when the release shows that somebody had deleted the lock', async () => {
    const running = locks.run('key', () => {
      held.clear();
    });
    await expect(running).rejects.toMatchObject({ reason: 'released-elsewhere' });
  });

  it('throws the work’s own error rather than the loss, which becomes its cause', async () => {
    const error = new Error('of the work');
    const running = locks.run('key', () => {
      clock.block(5_000);
      throw error;
    });
    await expect(running).rejects.toBe(error);
    expect(error.cause).toBeInstanceOf(LockLostError);
  });

  it('leaves an error its own cause, and a frozen one as it is', async () => {
    const withCause = new Error('of the work', { cause: 'its own' });
    const frozen = Object.freeze(new Error('frozen'));
    for (const error of [withCause, frozen, 'no error at all', null]) {
      const running = locks.run('key', () => {
        clock.block(5_000);
        throw error;
      });
      await expect(running).rejects.toBe(error);
      await clock.advance(10_000);
    }
    expect(withCause.cause).toBe('its own');
  });

  it('throws the loss, and not the AbortError that Node makes of the signal', async () => {
    let reason: unknown;
    const running = locks.run('key', async ({ signal }) => {
      signal.addEventListener('abort', () => (reason = signal.reason));
      clock.block(5_000);
      await Promise.all([once(new EventEmitter(), 'never', { signal }), clock.advance(1)]);
    });
    await expect(running).rejects.toBe(await running.catch(() => reason));
    expect(reason).toBeInstanceOf(LockLostError);
  });

  it('passes the loss on that the work noticed itself', async () => {
    let noticed: unknown;
    const running = locks.run('key', (lock) => {
      clock.block(5_000);
      try {
        lock.assertHeld();
      } catch (error) {
        noticed = error;
        throw error;
      }
    });
    await expect(running).rejects.toBe(await running.catch(() => noticed));
    expect((noticed as Error).cause).toBeUndefined();
  });

  it('lets the work give the lock back early', async () => {
    const value = await locks.run('key', async (lock) => {
      expect(await lock.release()).toBe(true);
      return 'value';
    });
    expect(value).toBe('value');
    expect(service.lost).toEqual([]);
  });
});

describe('tryRun', () => {
  it('runs when the lock is free, and says so', async () => {
    expect(await locks.tryRun('key', () => 'value')).toEqual({ acquired: true, value: 'value' });
    expect(held.size).toBe(0);
  });

  it('does not run when somebody holds it, and says when to come again', async () => {
    held.set('key', 'somebody');
    let ran = false;
    const result = await locks.tryRun('key', () => (ran = true));
    expect(result).toEqual({ acquired: false, retryAfterMs: 1_000 });
    expect(ran).toBe(false);
  });

  it('does not take the refusal of a lock that the work asks for as its own', async () => {
    held.set('inner', 'somebody');
    const outer = locks.tryRun('outer', () => locks.acquire('inner', { wait: 0 }));
    await expect(outer).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED', keys: ['inner'] });
    const nested = await locks.tryRun('outer', () => locks.tryRun('inner', () => 'never'));
    expect(nested).toEqual({
      acquired: true,
      value: { acquired: false, retryAfterMs: 1_000 },
    });
  });

  it('does not hide an outage', async () => {
    service.store.onAcquire = () => OUTAGE;
    await expect(locks.tryRun('key', () => 'never')).rejects.toThrow(LockStoreUnavailableError);
  });

  it('goes through inside a section that holds the key', async () => {
    const result: TryRunResult<TryRunResult<number>> = await locks.tryRun('key', (outer) =>
      locks.tryRun('key', (inner) => inner.fencingToken - outer.fencingToken),
    );
    expect(result).toEqual({ acquired: true, value: { acquired: true, value: 0 } });
  });
});

describe('a call from inside a section that asks for the same keys', () => {
  it('TR-57 goes through: the same lease, the same fencing token, one request to the store', async () => {
    const tokens = await locks.run('key', (outer) =>
      locks.run('key', (middle) =>
        locks.run('key', (inner) => [
          outer.fencingToken,
          middle.fencingToken,
          inner.fencingToken,
          inner.keys,
        ]),
      ),
    );
    expect(tokens).toEqual([1, 1, 1, ['key']]);
    expect(service.store.acquired).toHaveLength(1);
    expect(service.store.released).toHaveLength(1);
  });

  it('goes through for some of several keys, whatever their order', async () => {
    await locks.run(['b', 'a', 'c'], async () => {
      await locks.run(['c', 'a'], () => undefined);
      await locks.run('b', () => undefined);
    });
    expect(service.store.acquired.map(({ key }) => key)).toEqual(['a', 'b', 'c']);
  });

  it('goes through past a section of another key', async () => {
    await locks.run('a', () => locks.run('b', () => locks.run('a', () => undefined)));
    expect(service.store.acquired.map(({ key }) => key)).toEqual(['a', 'b']);
  });

  it('takes turns with its siblings', async () => {
    const log: string[] = [];
    const [first, second, third] = ['first', 'second', 'third'].map((name) => work(name, log));
    const outer = locks.run('key', () =>
      Promise.all([first, second, third].map((sibling) => locks.run('key', () => sibling?.run()))),
    );
    await settled();
    expect(log).toEqual(['first begins']);
    third?.gate.resolve();
    second?.gate.resolve();
    await settled();
    expect(log).toEqual(['first begins']);
    first?.gate.resolve();
    expect(await outer).toEqual(['first', 'second', 'third']);
    expect(log).toEqual([
      'first begins',
      'first ends',
      'second begins',
      'second ends',
      'third begins',
      'third ends',
    ]);
  });

  it('takes turns with a sibling that fails', async () => {
    const outcomes = await locks.run('key', () =>
      Promise.allSettled([
        locks.run('key', () => Promise.reject(new Error('first'))),
        locks.run('key', () => 'second'),
      ]),
    );
    expect(outcomes).toMatchObject([{ status: 'rejected' }, { value: 'second' }]);
  });

  it('takes turns on every level', async () => {
    let inside = 0;
    let most = 0;
    const leaf = (): Promise<void> =>
      locks.run('key', async () => {
        most = Math.max(most, (inside += 1));
        await settled();
        inside -= 1;
      });
    const branch = (): Promise<unknown> =>
      locks.run('key', () => Promise.all([leaf(), leaf(), leaf()]));
    await locks.run('key', () => Promise.all([branch(), branch(), leaf()]));
    expect(most).toBe(1);
    expect(service.store.acquired).toHaveLength(1);
  });

  it('is waited for when nobody awaits it: the lock is not given back before', async () => {
    const log: string[] = [];
    const nested = work('nested', log);
    let running: Promise<unknown> | undefined;
    const outer = locks
      .run('key', () => {
        running = locks.run('key', () => nested.run());
        return 'outer';
      })
      .then(() => log.push('outer ends'));
    await clock.advance(2_000);
    expect(log).toEqual(['nested begins']);
    expect(held.has('key')).toBe(true);
    nested.gate.resolve();
    await Promise.all([outer, running]);
    expect(log).toEqual(['nested begins', 'nested ends', 'outer ends']);
    expect(held.size).toBe(0);
  });

  it('is waited for also while it still waits for its turn', async () => {
    const log: string[] = [];
    const [first, second] = [work('first', log), work('second', log)];
    let running: Promise<unknown> | undefined;
    const outer = locks.run('key', () => {
      running = Promise.all([
        locks.run('key', () => first.run()),
        locks.run('key', () => second.run()),
      ]);
    });
    await settled();
    first.gate.resolve();
    await settled();
    expect(log).toEqual(['first begins', 'first ends', 'second begins']);
    expect(held.has('key')).toBe(true);
    second.gate.resolve();
    await Promise.all([outer, running]);
    expect(held.size).toBe(0);
  });

  it('from a timer that outlived the section locks for itself', async () => {
    const later = deferred<number>();
    const fired = deferred();
    await locks.run('key', (lock) => {
      setImmediate(() => {
        fired.resolve();
        void locks
          .run('key', (own) => own.fencingToken - lock.fencingToken)
          .then(later.resolve, later.reject);
      });
    });
    const elsewhere = await locks.acquire('key');
    await fired.promise;
    await settled();
    expect(service.store.acquired.length).toBeGreaterThanOrEqual(2);
    await elsewhere.release();
    expect(await later.promise).toBe(2);
  });

  it('that begins while the section ends locks for itself', async () => {
    const log: string[] = [];
    const nested = work('nested', log);
    let late: Promise<number> | undefined;
    let running: Promise<unknown> | undefined;
    const ended = deferred();
    const outer = locks.run('key', () => {
      running = locks.run('key', () => nested.run());
      void ended.promise.then(() => {
        late = locks.run('key', (lock) => {
          log.push('late');
          return lock.fencingToken;
        });
      });
    });
    await settled(); // the work has returned, the nested call still runs
    ended.resolve();
    await settled();
    expect(log).toEqual(['nested begins']);
    nested.gate.resolve();
    await Promise.all([outer, running]);
    expect(await late).toBe(2);
    expect(log).toEqual(['nested begins', 'nested ends', 'late']);
  });

  it('with reentrant: false is an error at once', async () => {
    await locks.run('key', async () => {
      const nested = locks.run('key', { reentrant: false, wait: 60_000 }, () => 'never');
      await expect(nested).rejects.toThrow(LockReentrancyError);
    });
    expect(clock.now().monotonicMs).toBe(0);
    await expect(locks.run('key', { reentrant: false }, () => 'fine')).resolves.toBe('fine');
  });

  it('and for one more is an error at once: locks taken in two steps can wait for each other', async () => {
    await locks.run('a', async () => {
      const nested = locks.run(['a', 'b'], { wait: 60_000 }, () => 'never');
      await expect(nested).rejects.toThrow(LockReentrancyError);
      await expect(nested).rejects.toThrow(detailed(/"a", "b".*holds only "a".*outer call/));
    });
    expect(service.store.acquired).toHaveLength(1);
    expect(clock.now().monotonicMs).toBe(0);
  });

  it('by acquire is a stranger’s: it waits', async () => {
    await locks.run('key', async () => {
      expect(await locks.tryAcquire('key')).toBeNull();
      const waiting = locks.acquire('key', { wait: 100 });
      const refusal = expect(waiting).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
      await clock.advance(200);
      await refusal;
    });
  });

  it('under a lock that acquire took is a stranger’s too', async () => {
    const lock = await locks.acquire('key');
    expect(await locks.tryRun('key', () => 'never')).toMatchObject({ acquired: false });
    await lock.release();
  });

  it('of another service is a stranger’s', async () => {
    const other = new LockService(
      { store: storeOption(service.store), ttl: 1_000 },
      { runtime: clock },
    );
    await locks.run('key', async () => {
      expect(await other.tryRun('key', () => 'never')).toMatchObject({ acquired: false });
      await other.run('another', async () => {
        await expect(locks.run('key', () => 'through')).resolves.toBe('through');
      });
    });
    await other.shutdown();
  });

  it('from another call, outside the section, is a stranger’s', async () => {
    const log: string[] = [];
    const [first, second] = [work('first', log), work('second', log)];
    second.gate.resolve();
    const both = [locks.run('key', first.run), locks.run('key', second.run)];
    await clock.advance(100);
    expect(log).toEqual(['first begins']);
    first.gate.resolve();
    await Promise.all(both);
    expect(log).toEqual(['first begins', 'first ends', 'second begins', 'second ends']);
  });

  it('gets a handle that cannot end the section’s lock, and that can extend it', async () => {
    await locks.run('key', async (outer) => {
      await locks.run('key', async (inner) => {
        expect(await inner.release()).toBe(true);
        await inner[Symbol.asyncDispose]();
        expect(outer.isHeld).toBe(true);
        await inner.extend(5_000);
        expect(outer.remainingMs).toBeCloseTo(4_998);
        expect(inner.remainingMs).toBe(outer.remainingMs);
        expect(inner.signal).toBe(outer.signal);
      });
      expect(held.has('key')).toBe(true);
    });
  });

  it('is refused when the lock was lost while it waited for its turn', async () => {
    const log: string[] = [];
    const [first, second] = [work('first', log), work('second', log)];
    const outer = locks.run('key', async () => {
      const outcomes = Promise.allSettled([
        locks.run('key', () => first.run()),
        locks.run('key', () => second.run()),
      ]);
      await settled();
      service.store.onExtend = () => ({ status: 'lost', reason: 'stolen' });
      await clock.advance(500);
      first.gate.resolve();
      return outcomes;
    });
    const error: unknown = await outer.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockLostError);
    expect(log).toEqual(['first begins', 'first ends']);
  });

  it('ends with the loss when the lock is lost under it, and so does the section', async () => {
    const seen: unknown[] = [];
    const outer = locks.run('key', async () => {
      await locks
        .run('key', async () => {
          clock.block(5_000);
          return 'value';
        })
        .catch((error: unknown) => seen.push(error));
    });
    await expect(outer).rejects.toThrow(LockLostError);
    expect(seen).toMatchObject([{ code: 'LOCK_LOST', reason: 'expired' }]);
  });

  it('with a signal that has aborted does not run', async () => {
    const reason = new Error('changed my mind');
    await locks.run('key', async () => {
      const nested = locks.run('key', { signal: AbortSignal.abort(reason) }, () => 'never');
      await expect(nested).rejects.toBe(reason);
    });
  });

  it('ends its wait for its turn when its signal aborts, and keeps nobody from theirs', async () => {
    const log: string[] = [];
    const [first, third] = [work('first', log), work('third', log)];
    third.gate.resolve();
    const reason = new Error('changed my mind');
    const controller = new AbortController();
    await locks.run('key', async () => {
      const running = [
        locks.run('key', () => first.run()),
        locks.run('key', { signal: controller.signal }, () => log.push('second')),
        locks.run('key', () => third.run()),
      ];
      const outcomes = Promise.allSettled(running);
      await settled();
      controller.abort(reason);
      await expect(running[1]).rejects.toBe(reason);
      expect(log).toEqual(['first begins']);
      first.gate.resolve();
      await outcomes;
    });
    expect(log).toEqual(['first begins', 'first ends', 'third begins', 'third ends']);
  });
});

describe('a turn', () => {
  const captured = (options: RunOptions) =>
    locks.run('key', async () => {
      // What runs in the outer section's context, called from inside a nested section: they wait for each other.
      const later = AsyncResource.bind(() => locks.run('key', options, () => 'value'));
      return locks.run('key', () => later());
    });

  it('is waited for no longer than an explicit wait', async () => {
    const outcome = captured({ wait: 200 }).then(
      () => 'ran',
      (error: unknown) => error,
    );
    await clock.advance(190);
    expect(await Promise.race([outcome, settled()])).toBeUndefined();
    await clock.advance(10);
    const refusal = await Promise.race([outcome, settled()]);
    expect(refusal).toBeInstanceOf(LockNotAcquiredError);
    expect(refusal).toMatchObject({ keys: ['key'], waitedMs: 200 });
    expect(held.size).toBe(0);
    await clock.advance(0);
    expect(clock.timers).toBe(0);
  });

  it('that comes within the wait is taken, and leaves no timer', async () => {
    await locks.run('key', { autoExtend: false }, async () => {
      const timers = clock.timers;
      const gate = deferred();
      const first = locks.run('key', () => gate.promise);
      const second = locks.run('key', { wait: 200 }, () => 'second');
      await clock.advance(100);
      gate.resolve();
      await first;
      expect(await second).toBe('second');
      expect(clock.timers).toBe(timers);
    });
  });

  it.each([0, '0s', undefined] as const)('is waited for without limit: wait %s', async (wait) => {
    await locks.run('key', async () => {
      const gate = deferred();
      const first = locks.run('key', () => gate.promise);
      const second = locks.run('key', wait === undefined ? {} : { wait }, () => 'second');
      await clock.advance(60_000);
      gate.resolve();
      await first;
      expect(await second).toBe('second');
    });
  });

  it('is not waited for by tryRun', async () => {
    const { log, gate, run } = { log: [] as string[], ...work('first', []) };
    await locks.run('key', async () => {
      const first = locks.run('key', run);
      const trying = locks.tryRun('key', () => log.push('ran'));
      expect(await Promise.race([trying, settled()])).toMatchObject({ acquired: false });
      gate.resolve();
      await first;
      expect(await locks.tryRun('key', () => 'ran')).toEqual({ acquired: true, value: 'ran' });
    });
    expect(log).toEqual([]);
  });
});

describe('a section whose lock the work gave back', () => {
  it('is over: a call from inside it locks for itself', async () => {
    const value = await locks.run('key', async (lock) => {
      await lock.release();
      expect(locks.current()).toBeUndefined();
      return locks.run('key', (own) => own.fencingToken - lock.fencingToken);
    });
    expect(value).toBe(1);
    expect(held.size).toBe(0);
  });

  it('is over for those deeper inside, and for those who wait for their turn', async () => {
    const tokens: number[] = [];
    await locks.run('key', async (lock) => {
      const gate = deferred();
      const first = locks.run('key', async () => {
        await gate.promise;
        tokens.push(await locks.run('key', (own) => own.fencingToken));
      });
      const second = locks.run('key', (own) => tokens.push(own.fencingToken));
      await settled();
      await lock.release();
      gate.resolve();
      await Promise.allSettled([first, second]);
      expect(tokens).toEqual([2, 3]);
    });
    expect(held.size).toBe(0);
  });
});

describe('current and assertHeld', () => {
  it('assertHeld in work that was not awaited says that an await may be missing', async () => {
    const over = deferred();
    let left: Promise<void> | undefined;
    await locks.run('a', () => {
      left = over.promise.then(() => {
        locks.assertHeld('a');
      });
    });
    over.resolve();
    await expect(left).rejects.toThrow(
      detailed(
        'Lock "a" was expected to be held, but the code that called assertHeld() does not run in a section that holds it, or that section is over. ' +
          'Is an await missing in its work?',
      ),
    );
  });

  it('know the innermost section that the code runs in', async () => {
    expect(locks.current()).toBeUndefined();
    await locks.run('a', async (a) => {
      expect(locks.current()).toBe(a);
      await locks.run('b', async (b) => {
        await settled();
        expect(locks.current()).toBe(b);
        locks.assertHeld('a');
        locks.assertHeld('b');
        expect(() => locks.assertHeld('c')).toThrow(LockLostError);
      });
      expect(locks.current()).toBe(a);
    });
    expect(locks.current()).toBeUndefined();
    expect(() => locks.assertHeld('a')).toThrow(LockLostError);
  });

  it('do not know a section that is over, in code that outlived it', async () => {
    const later = deferred<unknown>();
    await locks.run('key', () => {
      setImmediate(() => later.resolve(locks.current()));
    });
    expect(await later.promise).toBeUndefined();
  });

  it('do not know locks of acquire, nor those of another service', async () => {
    const other = new LockService({ store: storeOption(service.store) }, { runtime: clock });
    const lock = await locks.acquire('key');
    expect(locks.current()).toBeUndefined();
    await lock.release();
    await locks.run('key', () => {
      expect(other.current()).toBeUndefined();
    });
    await other.shutdown();
  });

  it('notice the loss by the clock', async () => {
    const running = locks.run('key', () => {
      clock.block(5_000);
      expect(() => locks.assertHeld('key')).toThrow(
        expect.objectContaining({ reason: 'expired', keys: ['key'] }),
      );
      throw new Error('stop');
    });
    await expect(running).rejects.toThrow('stop');
  });
});

describe('a section', () => {
  it('is not entered by a listener that hears of a loss from a timer which the section set', async () => {
    const real = new LockService({ store: 'memory' });
    const seen = new Promise((resolve) => {
      real.on('lost', () => {
        resolve(real.current());
      });
    });
    await real.run('key', async () => {
      await real.acquire('short', { ttl: 60, autoExtend: false });
      expect(await seen).toBeUndefined();
    });
    await real.shutdown();
  });

  it('that is over is not kept in memory by work that goes on from section to section', async () => {
    const { Section } = await import('../../lib/sections/section.js');
    const sections: WeakRef<object>[] = [];
    const lock = { keys: ['key'], mode: 'exclusive' } as unknown as LockHandle;
    let last: InstanceType<typeof Section> | undefined;
    for (let i = 0; i < 100; i += 1) {
      const section = new Section(locks, lock, last);
      sections.push(new WeakRef(section));
      last?.enclosing(locks);
      await last?.close();
      section.enclosing(locks);
      last = section;
    }
    const { setFlagsFromString } = await import('node:v8');
    const { runInNewContext } = await import('node:vm');
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    await settled();
    collectGarbage();
    expect(sections.filter((reference) => reference.deref() !== undefined).length).toBeLessThan(5);
    expect(last?.enclosing(locks)).toHaveLength(1);
  });
});
