import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { LockConfigurationError, LockService, WithLock, type RunOptions } from 'nestjs-holdfast';
import type {
  AcquireOutcome,
  AcquireRequest,
  LeaseReference,
  ReleaseOutcome,
} from '../../lib/store/lock-store.js';
import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';
import { ChildScript } from '../support/child-script.js';
import { RedisServer } from '../support/redis-server.js';
import { scriptedService, watchRejections } from '../support/scripted-service.js';
import { OUTAGE } from '../support/scripted-store.js';
import { settled, VirtualRuntime } from '../support/virtual-runtime.js';
import { storeOption } from '../../lib/options/location.js';

const rejections = watchRejections();
afterAll(() => rejections.expectNone());

/** A service over a store that notes for how long each release was to keep the keys. */
function keepingService() {
  const scripted = scriptedService({ ttl: 10_000 });
  const { store, clock } = scripted;
  const kept: (number | undefined)[] = [];
  /** When what was kept was to be free. */
  const freeAt: number[] = [];
  const release = store.release.bind(store);
  store.release = (lease: LeaseReference, _lastToken?: number, keepMs = 0) => {
    kept.push(keepMs);
    freeAt.push(clock.now().monotonicMs + keepMs);
    return release(lease);
  };
  return { ...scripted, kept, freeAt };
}

describe('the options', () => {
  const refusalOf = async (options: RunOptions): Promise<unknown> =>
    scriptedService({ ttl: 10_000 })
      .locks.acquire('key', options)
      .catch((error: unknown) => error);

  it('refuse a minHold that is longer than the TTL, and say why', async () => {
    const refusal = await refusalOf({ minHold: '11s' });
    expect(refusal).toBeInstanceOf(LockConfigurationError);
    expect((refusal as Error).message).toBe(
      '"minHold" (11000 ms) is longer than the TTL of the lock (10000 ms): a process that dies leaves the lock for its TTL, and that ' +
        'must cover it. Give a "ttl" of at least 11000 ms; a lock that is released is not kept for longer than "minHold".',
    );
    expect(await refusalOf({ minHold: '10s' })).not.toBeInstanceOf(Error);
    expect(await refusalOf({ minHold: '11s', ttl: '11s' })).not.toBeInstanceOf(Error);
  });

  it('refuse what is no duration, and no way to be released', async () => {
    expect(await refusalOf({ minHold: -1 })).toBeInstanceOf(LockConfigurationError);
    expect(await refusalOf({ release: 'never' as 'on-expiry' })).toMatchObject({
      message: `Option "release" must be 'when-done' or 'on-expiry', received "never".`,
    });
  });

  it('refuse to extend a lock for less than its minHold', async () => {
    const { locks, store } = keepingService();
    const lock = await locks.acquire('key', { minHold: '5s' });
    await expect(lock.extend('4s')).rejects.toThrow(LockConfigurationError);
    expect(store.extended).toHaveLength(0);
    await lock.extend('5s');
  });
});

describe('a decorated method', () => {
  it('with a minHold that is longer than its ttl is an error when its class is defined', () => {
    expect(() => {
      class Jobs {
        @WithLock('job', { minHold: '2m', ttl: '1m' })
        async run(): Promise<void> {
          // Never runs.
        }
      }
      return Jobs;
    }).toThrow('@WithLock on Jobs.run: "minHold" (120000 ms) is longer than the TTL');
  });

  it('with one that is longer than the ttl of its service is an error at the start', () => {
    class Jobs {
      @WithLock('job', { minHold: '2m' })
      async run(): Promise<void> {
        // Never runs.
      }
    }
    const { locks } = scriptedService({ ttl: '1m' });
    expect(() => locks.bind(new Jobs())).toThrow(
      '@WithLock on Jobs.run: "minHold" (120000 ms) is longer than the TTL of the lock (60000 ms)',
    );
  });

  it('keeps its lock as it says', async () => {
    class Jobs {
      @WithLock('job', { minHold: '2s' })
      async hold(): Promise<void> {
        // Done at once.
      }

      @WithLock('job', { release: 'on-expiry' })
      async expire(): Promise<void> {
        throw new Error('of the work');
      }
    }
    const { locks, kept } = keepingService();
    const jobs = locks.bind(new Jobs());
    await jobs.hold();
    await expect(jobs.expire()).rejects.toThrow('of the work');
    expect(kept).toEqual([2_000, 10_000]);
  });
});

describe('a lock with minHold', () => {
  it('is kept for what is left of it, counted from the grant', async () => {
    const { locks, clock, kept } = keepingService();
    const lock = await locks.acquire('key', { minHold: '5s' });
    await clock.advance(1_200);
    expect(await lock.release()).toBe(true);
    expect(kept).toEqual([3_800]);

    const other = await locks.acquire('key', { minHold: '5s' });
    await clock.advance(5_000);
    expect(await other.release()).toBe(true);
    expect(kept).toEqual([3_800, 0]);
  });

  it('is not kept for a shorter time because somebody set the clock', async () => {
    const { locks, clock, kept } = keepingService();
    const lock = await locks.acquire('key', { minHold: '5s' });
    clock.suspend(2_000);
    await lock.release();
    expect(kept).toEqual([5_000]);
  });

  it('is kept when maxHold ends it', async () => {
    const { locks, clock, kept, lost } = keepingService();
    await locks.acquire('key', { minHold: '5s', maxHold: '2s' });
    await clock.advance(2_000);
    expect(lost).toMatchObject([{ reason: 'max-hold' }]);
    expect(kept).toHaveLength(1);
    expect(kept[0]).toBeGreaterThanOrEqual(3_000);
  });

  it('is kept when a shutdown ends it', async () => {
    const { locks, clock, kept, lost } = keepingService();
    await locks.acquire('key', { minHold: '5s' });
    await clock.advance(1_000);
    const ended = locks.shutdown(0);
    await clock.advance(10);
    await ended;
    expect(lost).toMatchObject([{ reason: 'shutdown' }]);
    expect(kept).toEqual([4_000]);
  });

  it('is kept when the store answers again after an outage, for what is left then', async () => {
    const { locks, clock, freeAt, store } = keepingService();
    const lock = await locks.acquire('key', { minHold: '5s' });
    let answer: ReleaseOutcome = OUTAGE;
    store.onRelease = () => answer;
    await expect(lock.release()).rejects.toThrow('not available');
    await clock.advance(1_000);
    answer = { status: 'released' };
    await clock.advance(3_000);
    expect(freeAt.length).toBeGreaterThan(4);
    for (const at of freeAt) expect(at).toBeCloseTo(5_000, -1);
  });

  it('is kept a TTL with on-expiry: the longer of the two', async () => {
    const { locks, clock, kept } = keepingService();
    await locks.run('key', { minHold: '5s', release: 'on-expiry' }, () => clock.advance(6_000));
    expect(kept).toEqual([10_000]);
  });
});

describe('callers of the same process', () => {
  /** Lets callers take turns, as Redis does. */
  class TurnsStore extends MemoryLockStore {
    override async acquire(request: AcquireRequest): Promise<AcquireOutcome> {
      const outcome = await super.acquire(request);
      return outcome.status === 'granted' ? { ...outcome, isFromClock: true } : outcome;
    }
  }

  function memoryService() {
    const clock = new VirtualRuntime();
    const options = { ttl: '20s', wait: '1m', handoff: { tenure: '10s' } } as const;
    const locks = new LockService(
      { store: storeOption(new TurnsStore(clock)), ...options },
      { runtime: clock },
    );
    return { clock, locks };
  }

  /** When a caller who waits is granted a lock that was given back at once, in ms. */
  async function waitBehind(options: RunOptions, waiter: RunOptions = {}): Promise<number> {
    const { clock, locks } = memoryService();
    const lock = await locks.acquire('key', options);
    let grantedAt: number | undefined;
    void locks.acquire('key', waiter).then(
      () => (grantedAt = clock.now().monotonicMs),
      () => undefined,
    );
    await settled();
    await lock.release();
    await settled();
    for (let passed = 0; passed < 30_000 && grantedAt === undefined; passed += 10) {
      await clock.advance(10);
    }
    return grantedAt ?? Infinity;
  }

  it('are not passed it on before minHold is over, and then get it soon', async () => {
    expect(await waitBehind({})).toBeLessThanOrEqual(10);
    const waited = await waitBehind({ minHold: 300 });
    expect(waited).toBeGreaterThanOrEqual(300);
    expect(waited).toBeLessThanOrEqual(330);
  });

  it('are not passed it on with on-expiry', async () => {
    const waited = await waitBehind({ ttl: '2s', release: 'on-expiry' }, { ttl: '2s' });
    expect(waited).toBeGreaterThanOrEqual(2_000);
    expect(waited).toBeLessThanOrEqual(2_030);
  });

  it('who ask for minHold get a lease of their own, which covers it', async () => {
    const { clock, locks } = memoryService();
    const lock = await locks.acquire('key');
    const waiting = locks.acquire('key', { minHold: '20s' });
    await settled();
    await clock.advance(5_000);
    await lock.release();
    expect((await waiting).remainingMs).toBeGreaterThan(19_000);
  });

  it('are passed it on as ever once minHold is over', async () => {
    const { clock, locks } = memoryService();
    const lock = await locks.acquire('key', { minHold: 300 });
    const waiting = locks.acquire('key');
    await settled();
    await clock.advance(400);
    await lock.release();
    // A turn under the same lease: its validity goes on.
    expect((await waiting).remainingMs).toBeLessThan(19_700);
  });
});

describe('a process that ends in the middle of minHold', () => {
  let server: RedisServer;

  beforeAll(async () => {
    server = await RedisServer.start();
  });

  afterAll(() => server.stop());

  /** What is left of the key's TTL after a process has acquired it for `minHold: '20s'`, and this has ended it. */
  const leftAfter = async (key: string, how: 'SIGTERM' | 'SIGKILL'): Promise<number> => {
    const script = new URL('./min-hold-process.ts', import.meta.url);
    const process = new ChildScript(script, [server.url, key, how]);
    await expect(process.output).rejects.toThrow(`Ended with ${how}`);
    return Number(await server.command('PTTL', `lock:${key}`));
  };

  it.each(['SIGTERM', 'SIGKILL'] as const)(
    'leaves the lock to its end: %s',
    async (how) => {
      const leftMs = await leftAfter(how, how);
      expect(leftMs).toBeGreaterThan(how === 'SIGTERM' ? 1_000 : 20_000);
      expect(leftMs).toBeLessThanOrEqual(how === 'SIGTERM' ? 20_000 : 60_000);
    },
    60_000,
  );
});
