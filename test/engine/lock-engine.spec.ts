import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from '@jest/globals';
import {
  LockConfigurationError,
  LockDeadlockError,
  LockKeyError,
  LockLostError,
  LockNotAcquiredError,
  LockReturnKindError,
  LockStoreUnavailableError,
} from '../../lib/errors.js';
import { LockEngine } from '../../lib/engine/lock-engine.js';
import type { LockEvents } from '../../lib/observe/lock-events.js';
import { lockKey } from '../../lib/key/lock-key.js';
import { systemRuntime } from '../../lib/time/runtime.js';
import { detailOf } from '../support/detail.js';
import { deferred } from '../support/eventually.js';
import { heldFor, OUTAGE, silence, type ScriptedStore } from '../support/scripted-store.js';
import { scriptedEngine } from './scripted-engine.js';

/** Calls back outside all sections: the async context is that of this file. */
const outside = AsyncLocalStorage.snapshot();

const noWork = (): never => {
  throw new Error('The work ran without its lock');
};

const failureOf = (call: Promise<unknown>): Promise<unknown> =>
  call.catch((error: unknown) => error);

/** Each key is granted to the first who asks for it. Returns those that are taken. */
function grantEachOnce(store: ScriptedStore): ReadonlySet<string> {
  const taken = new Set<string>();
  store.onAcquire = ({ keys: [key = ''] }) => {
    if (taken.has(key)) return heldFor(1_000, key);
    taken.add(key);
    return { status: 'granted', fencingToken: 1 };
  };
  return taken;
}

const OUTAGE_OF_LOOK = new LockStoreUnavailableError({
  ...{ operation: 'inspect', keys: ['key'], nodes: OUTAGE.nodes },
});

const unavailable = (operation: string): object => ({
  code: 'LOCK_STORE_UNAVAILABLE',
  nodes: OUTAGE.nodes,
  keys: ['key'],
  detail: expect.stringContaining(`Could not ${operation} "key"`),
});

describe('acquire', () => {
  it('gives the lock, and reports it to those who listen, with the time that it took', async () => {
    const { clock, store, locks } = scriptedEngine();
    const answer = deferred<undefined>();
    store.onAcquire = async () => {
      await answer.promise;
      return { status: 'granted', fencingToken: 7 };
    };
    const heard: LockEvents['acquired'][] = [];
    const stop = locks.on('acquired', (event) => void heard.push(event));
    const acquiring = locks.acquire('key');
    await clock.advance(30);
    answer.resolve(undefined);
    const lock = await acquiring;
    expect(lock).toMatchObject({ keys: ['key'], fencingToken: 7 });
    expect(heard).toEqual([{ keys: ['key'], mode: 'exclusive', fencingToken: 7, waitedMs: 30 }]);
    expect(await lock.release()).toBe(true);
    stop();
    await (await locks.acquire('key')).release();
    expect(heard).toHaveLength(1);
  });

  it('rejects when the wait is over, and reports it', async () => {
    const { clock, store, locks } = scriptedEngine();
    store.onAcquire = () => heldFor(500);
    const heard: LockEvents['refused'][] = [];
    locks.on('refused', (event) => void heard.push(event));
    const outcome = locks.acquire('key', { wait: 300 }).catch((error: unknown) => error);
    await clock.advance(310); // several timers share one
    expect(await outcome).toBeInstanceOf(LockNotAcquiredError);
    expect(heard).toEqual([
      {
        keys: ['key'],
        mode: 'exclusive',
        retryAfterMs: expect.any(Number),
        waitedMs: expect.any(Number),
      },
    ]);
    expect(heard[0]?.waitedMs).toBeGreaterThanOrEqual(300);
    expect(heard[0]?.retryAfterMs).toBe(((await outcome) as LockNotAcquiredError).retryAfterMs);
  });

  it('rejects with the outage, which is no refusal', async () => {
    const { store, locks, warnings } = scriptedEngine();
    store.onAcquire = () => OUTAGE;
    const heard: unknown[] = [];
    locks.on('refused', (event) => void heard.push(event));
    await expect(locks.acquire('key', { wait: 0 })).rejects.toMatchObject(unavailable('acquire'));
    expect(heard).toEqual([]);
    // The caller learns of it, and may log it.
    expect(warnings).toEqual([]);
  });

  it('rejects when the lease was over before its caller could learn of it', async () => {
    const { clock, locks } = scriptedEngine();
    locks.on('acquired', () => {
      clock.block(1_001);
    });
    await expect(locks.acquire('key')).rejects.toBeInstanceOf(LockLostError);
  });

  it('refuses a key that must not be locked, and options that are wrong', async () => {
    const { locks, store } = scriptedEngine();
    await expect(locks.acquire('')).rejects.toBeInstanceOf(LockKeyError);
    await expect(locks.acquire([])).rejects.toBeInstanceOf(LockKeyError);
    await expect(locks.acquire('key', { ttl: -1 })).rejects.toBeInstanceOf(LockConfigurationError);
    expect(store.acquired).toEqual([]);
  });

  it('names where it was called, in the stack of the error', async () => {
    const { store, locks } = scriptedEngine();
    store.onAcquire = () => OUTAGE;
    for (const call of [
      () => locks.acquire('key', { wait: 0 }),
      () => locks.tryAcquire('key'),
      () => locks.run('key', { wait: 0 }, noWork),
      () => locks.tryRun('key', noWork),
    ]) {
      const error = (await call().catch((reason: unknown) => reason)) as Error;
      expect(error.stack).toMatch(/^\s+at .*lock-engine\.spec/m);
    }
  });
});

describe('a refusal of a key that was made by lockKey', () => {
  it.each([
    ['as long as such work took lately', undefined, 200],
    ['for the rest of the lease with retryAfter "lease"', { retryAfter: 'lease' }, 20_000],
  ] as const)('names the key without its values, and asks to wait %s', async (_, errors, ms) => {
    const { clock, store, locks } = scriptedEngine(errors && { errors });
    const work = (): Promise<void> =>
      new Promise((resolve) => {
        clock.setTimer(resolve, 200);
      });
    const running = locks.run(lockKey`report:${1}`, work);
    await clock.advance(200);
    await running;
    store.onAcquire = () => heldFor(20_000);
    const refusal = await failureOf(locks.acquire(lockKey`report:${2}`, { wait: 0 }));
    expect(refusal).toMatchObject({
      message: expect.stringContaining('report:…'),
      retryHintMs: ms,
    });
  });
});

describe('tryAcquire', () => {
  it('gives the lock, or null when somebody else has it', async () => {
    const { store, locks } = scriptedEngine();
    const lock = await locks.tryAcquire(['b', 'a']);
    expect(lock?.keys).toEqual(['a', 'b']);
    await lock?.release();
    store.onAcquire = () => heldFor(500);
    expect(await locks.tryAcquire('key', { ttl: 700 })).toBeNull();
    expect(store.acquired.at(-1)).toMatchObject({ keys: ['key'], ttlMs: 700 });
  });

  it('takes an outage for an outage', async () => {
    const { store, locks } = scriptedEngine();
    store.onAcquire = () => OUTAGE;
    await expect(locks.tryAcquire('key')).rejects.toBeInstanceOf(LockStoreUnavailableError);
  });

  it('does not wait, whatever the default is', async () => {
    const { store, locks } = scriptedEngine({ wait: '5s' });
    store.onAcquire = () => heldFor(500);
    expect(await locks.tryAcquire('key')).toBeNull();
  });
});

describe('run', () => {
  it('gives back what the work returns, and then the lock', async () => {
    const { store, locks } = scriptedEngine();
    const value = await locks.run('key', (lock) => {
      expect(store.released).toEqual([]);
      return `${lock.keys.join()} ${lock.fencingToken}`;
    });
    expect(value).toBe('key 1');
    expect(store.released).toMatchObject([{ keys: ['key'] }]);
  });

  it('gives the lock back when the work throws', async () => {
    const { store, locks } = scriptedEngine();
    const error = new Error('mine');
    await expect(locks.run('key', { ttl: 700 }, () => Promise.reject(error))).rejects.toBe(error);
    expect(store.acquired).toMatchObject([{ ttlMs: 700 }]);
    expect(store.released).toHaveLength(1);
  });

  it('rejects work that returns a stream, which would continue without the lock', async () => {
    const { store, locks } = scriptedEngine();
    // eslint-disable-next-line require-yield -- nothing reads it
    const stream = async function* (): AsyncGenerator<never> {
      await silence();
    };
    for (const running of [
      locks.run('key', () => stream()),
      locks.tryRun('key', () => stream()),
      locks.tryRun('key', {}, async () => stream()),
    ]) {
      await expect(running).rejects.toBeInstanceOf(LockReturnKindError);
      await expect(running).rejects.toMatchObject({
        keys: ['key'],
        detail: expect.stringMatching(
          /^The work under "key" returned a stream, which would continue without the lock\. Consume it inside the work, or return it from a method with @WithLock/,
        ),
      });
    }
    expect(store.released).toHaveLength(3);
  });

  it('gives back what the work returned when the release had no answer', async () => {
    const { store, locks, warnings } = scriptedEngine();
    store.onRelease = () => OUTAGE;
    expect(await locks.run('key', () => 'done')).toBe('done');
    expect(warnings).toEqual([expect.stringContaining('Could not release "key"')]);
  });

  it('rejects when the store says at the release that the lock was lost', async () => {
    const { store, locks } = scriptedEngine();
    store.onRelease = () => ({ status: 'not-held' });
    await expect(locks.run('key', () => 'done')).rejects.toBeInstanceOf(LockLostError);
  });

  it('lets a call inside the work through, under the same lease', async () => {
    const { store, locks } = scriptedEngine();
    const tokens = await locks.run(['a', 'b'], (outer) =>
      locks.run('a', (inner) => [outer.fencingToken, inner.fencingToken]),
    );
    expect(tokens).toEqual([1, 1]);
    expect(store.acquired).toHaveLength(1);
  });

  it('lets calls side by side in the work have their turns, one after the other, without a wait of their own', async () => {
    const { clock, locks } = scriptedEngine({ wait: 100 });
    const order: string[] = [];
    const all = locks.run('key', () =>
      Promise.all(
        ['one', 'two'].map((name) =>
          locks.run('key', async () => {
            order.push(`${name} begins`);
            await new Promise<void>((resolve) => {
              clock.setTimer(resolve, 200);
            });
            order.push(`${name} ends`);
          }),
        ),
      ),
    );
    await clock.advance(500);
    await all;
    expect(order).toEqual(['one begins', 'one ends', 'two begins', 'two ends']);
  });

  it('bounds the wait for such a turn where the call says how long', async () => {
    const { clock, locks } = scriptedEngine();
    const sibling = deferred<undefined>();
    let refused: unknown;
    const all = locks.run('key', async () => {
      const first = locks.run('key', () => sibling.promise);
      refused = await locks.run('key', { wait: 200 }, noWork).catch((error: unknown) => error);
      await first;
    });
    await clock.advance(199);
    expect(refused).toBeUndefined();
    await clock.advance(1);
    expect(refused).toBeInstanceOf(LockNotAcquiredError);
    sibling.resolve(undefined);
    await all;
  });

  it('refuses to wait for a lock whose holder waits for its own', async () => {
    const { clock, store, locks } = scriptedEngine();
    const taken = grantEachOnce(store);
    const bothHold = deferred<undefined>();
    const inOrder = (first: string, second: string): Promise<unknown> =>
      locks
        .run(first, async () => {
          if (taken.size === 2) bothHold.resolve(undefined);
          await bothHold.promise;
          return locks.run(second, { wait: 500 }, () => 'never');
        })
        .catch((error: unknown) => error);
    const outcomes = Promise.all([inOrder('a', 'b'), inOrder('b', 'a')]);
    await clock.advance(600);
    const errors = await outcomes;
    expect(errors.some((error) => error instanceof LockDeadlockError)).toBe(true);
    expect(errors.every((error) => error instanceof Error)).toBe(true);
  });

  it('may ask for it without waiting', async () => {
    const { clock, store, locks } = scriptedEngine();
    grantEachOnce(store);
    const bHeld = deferred<undefined>();
    const waiting = failureOf(
      locks.run('b', () => {
        bHeld.resolve(undefined);
        return locks.run('a', { wait: 500 }, noWork);
      }),
    );
    const asking = failureOf(
      locks.run('a', async () => {
        await bHeld.promise;
        return locks.run('b', { wait: 0 }, noWork);
      }),
    );
    await clock.advance(10);
    expect(await asking).toBeInstanceOf(LockNotAcquiredError);
    await clock.advance(600);
    expect(await waiting).toBeInstanceOf(LockNotAcquiredError);
  });

  it('may wait for it once the other waits no more', async () => {
    const { clock, store, locks } = scriptedEngine();
    let free = false;
    store.onAcquire = ({ keys: [key = ''] }) =>
      key === 'a' || free ? { status: 'granted', fencingToken: 1 } : heldFor(1_000, key);
    const gaveUp = deferred<undefined>();
    const end = deferred<undefined>();
    const first = locks.run('a', async () => {
      await locks.run('b', { wait: 50 }, noWork).catch(() => undefined);
      gaveUp.resolve(undefined);
      await end.promise;
    });
    await clock.advance(100);
    await gaveUp.promise;
    free = true;
    store.onAcquire = ({ keys: [key = ''] }) =>
      key === 'b' ? { status: 'granted', fencingToken: 2 } : heldFor(1_000, key);
    const second = locks
      .run('b', () => locks.run('a', { wait: 50 }, noWork))
      .catch((error: unknown) => error);
    await clock.advance(100);
    expect(await second).toBeInstanceOf(LockNotAcquiredError);
    end.resolve(undefined);
    await first;
  });
});

describe('tryRun', () => {
  it('says whether it ran the work, what that returned, and else when to ask again', async () => {
    const { store, locks } = scriptedEngine({ wait: '5s' });
    expect(await locks.tryRun('key', () => 'done')).toEqual({ acquired: true, value: 'done' });
    store.onAcquire = () => heldFor(500);
    const refused = await locks.tryRun('key', noWork);
    expect(refused).toEqual({ acquired: false, retryAfterMs: expect.any(Number) });
  });

  it('rejects with what the work throws, also with a refusal, and with an outage', async () => {
    const { store, locks } = scriptedEngine();
    store.onAcquire = ({ keys: [key] }) =>
      key === 'taken' ? heldFor(500, 'taken') : { status: 'granted', fencingToken: 1 };
    const running = locks.tryRun('key', () => locks.run('taken', { wait: 0 }, noWork));
    await expect(running).rejects.toBeInstanceOf(LockNotAcquiredError);
    store.onAcquire = () => OUTAGE;
    await expect(locks.tryRun('key', noWork)).rejects.toMatchObject(unavailable('acquire'));
  });

  it('does not wait for a turn that another call in the same work has', async () => {
    const { locks } = scriptedEngine();
    const sibling = deferred<undefined>();
    const outcome = await locks.run('key', async () => {
      const busy = locks.run('key', () => sibling.promise);
      const refused = await locks.tryRun('key', noWork);
      sibling.resolve(undefined);
      await busy;
      return refused;
    });
    expect(outcome).toMatchObject({ acquired: false });
  });
});

describe('a lock by hand inside a section that holds its key', () => {
  it('is refused with a word about the section', async () => {
    const { store, locks } = scriptedEngine();
    const ask = async (): Promise<string> => {
      const holder = store.acquired[0]?.token;
      store.onAcquire = ({ keys: [key] }) =>
        key === 'key' ? { ...heldFor(500), holder } : { status: 'granted', fencingToken: 2 };
      const call = locks.acquire('key', { wait: 0 });
      return call.then(
        () => '',
        (error: unknown) => detailOf(error),
      );
    };
    const [inside, beside] = await locks.run('key', async () => {
      const elsewhere = await outside(ask);
      return [await locks.run('other', ask), elsewhere];
    });
    expect(inside).toContain('by the run(), @WithLock or @RunOnce around this very call');
    expect(beside).toContain('in this same process');
    expect(beside).not.toContain('around');
  });

  it('of another key is refused without one', async () => {
    const { store, locks } = scriptedEngine();
    const { locks: others } = scriptedEngine();
    const detail = await locks.run('other', () =>
      others.run('key', async () => {
        const lock = await outside(() => locks.acquire('key'));
        store.onAcquire = () => ({ ...heldFor(500), holder: store.acquired[1]?.token });
        const call = locks.acquire('key', { wait: 0 });
        const said = await call.catch((error: unknown) => detailOf(error));
        await lock.release();
        return said;
      }),
    );
    expect(detail).toContain('in this same process');
    expect(detail).not.toContain('around');
  });
});

describe('what is asked of a key', () => {
  it('is whether it is held, and for how long', async () => {
    const { store, locks } = scriptedEngine();
    expect(await locks.inspect('key')).toEqual({ held: false });
    const holders = [7, 12].map((remainingMs) => ({ token: String(remainingMs), remainingMs }));
    store.admin.look = async () => [{ key: 'key', holders, line: [] }];
    expect(await locks.inspect('key')).toEqual({ held: true, remainingMs: 12 });
    store.admin.look = () => Promise.reject(OUTAGE_OF_LOOK);
    await expect(locks.inspect('key')).rejects.toMatchObject(unavailable('inspect'));
    await expect(locks.inspect('')).rejects.toBeInstanceOf(LockKeyError);
  });

  it('is to end it, and the answer whether there was one', async () => {
    const { store, locks } = scriptedEngine();
    expect(await locks.forceRelease('key')).toBe(false);
    const [holder, stray] = ['holder', 'stray'].map((token) => ({ token, remainingMs: 12 }));
    store.admin.look = async () => [
      { key: 'key', holders: [holder!], strays: [stray!], line: [], fencingToken: 7 },
    ];
    expect(await locks.forceRelease('key')).toBe(true);
    expect(store.released.map(({ token }) => token)).toEqual(['holder', 'stray']);
    store.onRelease = () => OUTAGE;
    await expect(locks.forceRelease('key')).rejects.toMatchObject(unavailable('release'));
    // The holders cannot be found out.
    store.admin.look = () => Promise.reject(OUTAGE_OF_LOOK);
    await expect(locks.forceRelease('key')).rejects.toMatchObject(unavailable('inspect'));
    await expect(locks.forceRelease('')).rejects.toBeInstanceOf(LockKeyError);
  });
});

describe('a key of which the store knows nothing', () => {
  it('is not held, and there is nothing to end', async () => {
    const { store, locks } = scriptedEngine();
    store.admin.look = async () => [];
    expect(await locks.inspect('key')).toEqual({ held: false });
    expect(await locks.forceRelease('key')).toBe(false);
    expect(store.released).toEqual([]);
  });
});

describe('the code under a lock', () => {
  it('finds its lock, the innermost one of its service', async () => {
    const { locks } = scriptedEngine();
    const { locks: others } = scriptedEngine();
    expect(locks.current()).toBeUndefined();
    await locks.run('a', async (outer) => {
      expect(locks.current()?.keys).toEqual(outer.keys);
      await others.run('b', () => {
        expect(locks.current()?.keys).toEqual(['a']);
        expect(others.current()?.keys).toEqual(['b']);
      });
      await locks.run('c', () => {
        expect(locks.current()?.keys).toEqual(['c']);
      });
    });
    expect(locks.current()).toBeUndefined();
  });

  it('asserts that it holds a key', async () => {
    const { clock, locks } = scriptedEngine();
    const notHeld = (key: string): void => {
      const assert = (): void => {
        locks.assertHeld(key);
      };
      expect(assert).toThrow(LockLostError);
      expect(assert).toThrow(expect.objectContaining({ keys: [key], reason: 'not-held' }));
    };
    notHeld('a');
    await locks.run('a', () =>
      locks.run('b', () => {
        locks.assertHeld('a');
        locks.assertHeld('b');
        notHeld('c');
      }),
    );
    const lost = locks.run('a', () => {
      clock.block(1_001);
      locks.assertHeld('a');
    });
    await expect(lost).rejects.toMatchObject({ reason: 'expired' });
  });

  it('loses it at once when a test wants it to', async () => {
    const { locks, warnings } = scriptedEngine();
    expect(locks.lose('key')).toBe(false);
    const lock = await locks.acquire('key');
    expect(locks.lose('key')).toBe(true);
    expect(lock.signal.reason).toMatchObject({ reason: 'stolen' });
    expect(warnings).toEqual([detailOf(lock.signal.reason)]);
  });

  it('is no attempt at work that is done once', async () => {
    const { locks } = scriptedEngine();
    expect(locks.currentAttempt()).toBeUndefined();
    await locks.run('key', () => {
      expect(locks.currentAttempt()).toBeUndefined();
    });
  });
});

describe('a store', () => {
  it('is opened when the engine is', async () => {
    const { store, locks } = scriptedEngine();
    let opened = 0;
    Object.assign(store, {
      open: async () => {
        opened += 1;
      },
    });
    await locks.open();
    expect(opened).toBe(1);
  });
});

describe('options', () => {
  it('that a call does not have are refused by its name', async () => {
    const { locks } = scriptedEngine();
    const wrong = { colour: 'red' } as object;
    for (const [name, call] of [
      ['acquire', () => locks.acquire('key', wrong)],
      ['tryAcquire', () => locks.tryAcquire('key', wrong)],
      ['run', () => locks.run('key', wrong, noWork)],
      ['tryRun', () => locks.tryRun('key', wrong, noWork)],
    ] as const)
      await expect(call()).rejects.toThrow(`${name}() has no option "colour".`);
  });

  it('of an extension are those of a TTL', async () => {
    const { store, locks } = scriptedEngine();
    const lock = await locks.acquire('key');
    await lock.extend('2s');
    expect(store.extended).toMatchObject([[{ ttlMs: 2_000 }]]);
    await expect(lock.extend('soon' as never)).rejects.toBeInstanceOf(LockConfigurationError);
    await lock.release();
  });

  it('of a call are checked against those of the service', () => {
    const { locks } = scriptedEngine();
    expect(locks.resolved({ ttl: '2s' })).toMatchObject({ ttlMs: 2_000, waitMs: 10_000 });
    expect(() => {
      locks.resolved({ ttl: 0 });
    }).toThrow(LockConfigurationError);
  });

  it('of the service have it lock in the memory of the process, or on Redis', async () => {
    const surroundings = {
      runtime: systemRuntime,
      log: { warn: () => undefined, error: () => undefined },
    };
    const memory = new LockEngine({ store: 'memory' }, surroundings);
    await memory.open();
    expect(await memory.run('key', () => memory.inspect('key'))).toMatchObject({ held: true });
    expect(await memory.health()).toMatchObject({ hasQuorum: true, quorum: 1 });
    expect(memory.shutdownTimeoutMs).toBe(10_000);
    expect(memory.outlivesProcess).toBe(false);
    await memory.shutdown();
    const redis = new LockEngine({ redis: { host: '127.0.0.1', port: 1 } }, surroundings);
    expect(await redis.health()).toMatchObject({
      hasQuorum: false,
      nodes: [{ node: '127.0.0.1:1', reachable: false }],
    });
    await redis.shutdown(0);
    expect(redis.outlivesProcess).toBe(true);
  });
});
