import { afterAll, describe, expect, it, jest } from '@jest/globals';
import type {
  AcquireOutcome,
  Held,
  LinePlace,
  ReleaseListener,
} from '../../lib/store/lock-store.js';
import { detailed } from '../support/detail.js';
import { deferred } from '../support/eventually.js';
import { scriptedService, watchRejections } from '../support/scripted-service.js';
import { FORBIDDEN, heldFor, OUTAGE } from '../support/scripted-store.js';
import { settled } from '../support/virtual-runtime.js';

const rejections = watchRejections();
afterAll(() => rejections.expectNone());

const inLine = (ticket = 7): Held => ({ ...heldFor(60_000), ticket });

/** A service whose locks are all held by somebody else, and that gives tickets. */
function busyService() {
  const scripted = scriptedService({ ttl: '1m', wait: '10m' });
  const { store } = scripted;
  store.onAcquire = ({ line }) => (line === undefined ? heldFor(60_000) : inLine());
  const places = (): LinePlace[] => store.acquired.flatMap(({ line }) => (line ? [line] : []));
  return { ...scripted, places };
}

describe('lines', () => {
  it('are as many as there are ways to hold a key', async () => {
    const { store, locks, places } = busyService();
    const ways = [
      {},
      { mode: 'shared' },
      { limit: 2 },
      { limit: 3 },
    ] as const satisfies readonly object[];
    const waiting = ways.flatMap((way) => [locks.acquire('key', way), locks.acquire('key', way)]);
    const outcomes = Promise.allSettled(waiting);
    await settled();
    expect(new Set(places().map(({ id }) => id)).size).toBe(ways.length);
    expect(store.acquired).toHaveLength(8);
    locks.refuseWaiting();
    await outcomes;
  });

  it('are one for each set of keys, also where the names of their keys read alike', async () => {
    const { locks, places } = busyService();
    const waiting = [
      locks.acquire(['a', 'bc']),
      locks.acquire(['ab', 'c']),
      locks.acquire('a', { mode: 'shared' }),
      locks.acquire('b', { mode: 'shared' }),
    ];
    const outcomes = Promise.allSettled(waiting);
    await settled();
    expect(new Set(places().map(({ id }) => id)).size).toBe(4);
    locks.refuseWaiting();
    await outcomes;
  });

  it('let in one after the other, without a pause, those who may hold a key together', async () => {
    const { clock, store, locks } = scriptedService();
    const held = await Promise.all([1, 2, 3].map(() => locks.acquire('key', { limit: 3 })));
    expect(clock.now().monotonicMs).toBe(0);
    expect(new Set(store.acquired.map(({ token }) => token)).size).toBe(3);
    for (const lock of held) await lock.release();
  });

  it('have one name in the store through an outage', async () => {
    const { clock, store, locks, places } = busyService();
    const waiting = locks.acquire('key').catch(() => undefined);
    await settled();
    const answer = store.onAcquire;
    store.onAcquire = () => OUTAGE;
    store.reportReleased();
    await settled();
    store.onAcquire = answer;
    await clock.advance(100);
    expect(places().length).toBeGreaterThanOrEqual(3);
    expect(new Set(places().map(({ id }) => id)).size).toBe(1);
    locks.refuseWaiting();
    await waiting;
  });

  it('look when they are called by that name', async () => {
    const { store, locks, places } = busyService();
    const waiting = locks.acquire('key').catch(() => undefined);
    await settled();
    const before = store.acquired.length;
    store.reportReleased('key', { to: places()[0]?.id ?? '', inMs: 0 });
    await settled();
    expect(store.acquired).toHaveLength(before + 1);
    locks.refuseWaiting();
    await waiting;
  });
});

describe('a call that nobody waits for any more', () => {
  it('is passed on also while another line waits for the key, and under the name that was called', async () => {
    const { store, locks } = busyService();
    const controller = new AbortController();
    const gone = locks.acquire('key', { signal: controller.signal }).catch(() => undefined);
    const stays = locks.acquire(['key', 'another']).catch(() => undefined);
    await settled();
    const [asked] = store.acquired.filter(({ line, key }) => line && key === 'key');
    controller.abort();
    await gone;
    await settled();
    const left: unknown[] = [];
    store.leave = async (lease, place?: LinePlace) => void left.push({ lease, place });
    const to = asked?.token ?? '';
    store.reportReleased('key', { to, inMs: 0 });
    await settled();
    expect(left).toMatchObject([{ lease: { key: 'key', token: to }, place: { id: to } }]);
    locks.refuseWaiting();
    await stays;
  });
});

describe('between two looks', () => {
  it.each([
    [0, 1_005],
    [0.99, 1_010],
  ])(
    'a line sleeps until the lease of the holder is over, and a little: chance %d',
    async (chance, at) => {
      const { clock, store, locks } = scriptedService({ ttl: '1m' });
      jest.spyOn(clock, 'random').mockReturnValue(chance);
      store.onAcquire = () => heldFor(1_000);
      const waiting = locks.acquire('key', { wait: '1m' }).catch(() => undefined);
      await clock.advance(at - 1);
      const before = store.acquired.length;
      await clock.advance(1);
      expect(store.acquired).toHaveLength(before + 1);
      locks.refuseWaiting();
      await waiting;
    },
  );

  it('a line pauses for 50 ms after the first failure, and a little', async () => {
    const { clock, store, locks } = scriptedService();
    jest.spyOn(clock, 'random').mockReturnValue(0);
    store.onAcquire = () => OUTAGE;
    const waiting = locks.acquire('key').catch(() => undefined);
    await clock.advance(54);
    expect(store.acquired).toHaveLength(1);
    await clock.advance(1);
    expect(store.acquired).toHaveLength(2);
    locks.refuseWaiting();
    await waiting;
  });

  it('a pause ends when the last caller goes', async () => {
    const { clock, store, locks } = scriptedService();
    store.onAcquire = () => OUTAGE;
    const controller = new AbortController();
    const waiting = locks.acquire('key', { signal: controller.signal }).catch(() => undefined);
    await clock.advance(400);
    controller.abort();
    await waiting;
    let isSettled = false;
    const down = locks.shutdown(0).then(() => (isSettled = true));
    await settled();
    expect(isSettled).toBe(true);
    await down;
  });
});

describe('a caller who goes while its request is on its way', () => {
  /** The only caller of a line, whose second request, for a place, is on its way when it goes. */
  async function goneMeanwhile() {
    const scripted = scriptedService({ ttl: '1m', wait: '10m' });
    const { store, locks } = scripted;
    const answer = deferred<AcquireOutcome>();
    store.onAcquire = ({ line }) => (line === undefined ? heldFor(60_000) : answer.promise);
    const controller = new AbortController();
    const gone = locks.acquire('key', { signal: controller.signal }).catch(() => undefined);
    await settled();
    expect(store.acquired).toHaveLength(2);
    controller.abort();
    await gone;
    return { ...scripted, answer };
  }

  it('leaves the place that it is given, at once', async () => {
    const { clock, store, answer } = await goneMeanwhile();
    answer.resolve(inLine());
    await settled();
    expect(store.left).toEqual(['key']);
    expect(clock.timers).toBe(0);
  });

  it('gives back the lock that nobody is there for', async () => {
    const { clock, store, answer } = await goneMeanwhile();
    answer.resolve({ status: 'granted', fencingToken: 1 });
    await settled();
    expect(store.released).toMatchObject([{ key: 'key', token: store.acquired[1]?.token }]);
    expect(store.left).toEqual([]);
    expect(clock.timers).toBe(0);
  });

  it('leaves nothing when waiting could not have ended the outage', async () => {
    const { clock, store, answer } = await goneMeanwhile();
    answer.resolve(FORBIDDEN);
    await clock.advance(10_000);
    expect(store.acquired).toHaveLength(2);
    expect(clock.timers).toBe(0);
  });

  it('has nothing to leave when the store knows of no place', async () => {
    const { clock, store, locks } = scriptedService();
    const answer = deferred<AcquireOutcome>();
    store.onAcquire = () => answer.promise;
    const controller = new AbortController();
    const gone = locks.acquire('key', { signal: controller.signal }).catch(() => undefined);
    await settled();
    controller.abort();
    await gone;
    answer.resolve(heldFor(60_000));
    await settled();
    expect(store.left).toEqual([]);
    expect(clock.timers).toBe(0);
  });

  it('does not leave its lock to one who asked for another TTL: that one asks for itself', async () => {
    const { store, locks } = scriptedService();
    const answer = deferred<AcquireOutcome>();
    store.onAcquire = () => answer.promise;
    const controller = new AbortController();
    const gone = locks.acquire('key', { signal: controller.signal }).catch(() => undefined);
    const next = locks.acquire('key', { ttl: 5_000 });
    await settled();
    controller.abort();
    await gone;
    store.onAcquire = () => ({ status: 'granted', fencingToken: 2 });
    answer.resolve({ status: 'granted', fencingToken: 1 });
    const lock = await next;
    expect(lock.fencingToken).toBe(2);
    expect(lock.remainingMs).toBeGreaterThan(4_000);
    expect(store.released.map(({ token }) => token)).toEqual([store.acquired[0]?.token]);
    await lock.release();
  });
});

describe('a wait', () => {
  it('that is over in the very moment of the first answer ends then', async () => {
    const { clock, store, locks } = scriptedService();
    const answer = deferred<AcquireOutcome>();
    store.onAcquire = () => answer.promise;
    let refusal: unknown;
    const waiting = locks.acquire('key', { wait: 100 }).catch((error: unknown) => {
      refusal = error;
    });
    await clock.advance(100);
    answer.resolve(heldFor(60_000));
    await settled();
    expect(refusal).toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
    await waiting;
  });

  it('that nobody can serve, because something unforeseen failed, ends for everybody', async () => {
    const { clock, locks } = scriptedService();
    const failure = new Error('no chance left');
    jest.spyOn(clock, 'uuid').mockImplementation(() => {
      throw failure;
    });
    const waiting = [locks.acquire('key'), locks.acquire('key')];
    for (const outcome of await Promise.allSettled(waiting))
      expect(outcome).toMatchObject({ reason: failure });
    jest.restoreAllMocks();
    await (await locks.acquire('key')).release();
    expect(clock.timers).toBe(0);
  });
});

describe('a request that never left the process', () => {
  it('leaves nothing to clean up, and keeps its place', async () => {
    const { clock, store, locks, places } = busyService();
    const waiting = locks.acquire('key').catch(() => undefined);
    await settled();
    const answer = store.onAcquire;
    store.onAcquire = () => ({ ...OUTAGE, sent: false });
    store.reportReleased();
    await settled();
    store.onAcquire = answer;
    await clock.advance(100);
    expect(store.released).toEqual([]);
    expect(store.left).toEqual([]);
    expect(places().at(-1)?.ticket).toBe(7);
    const tokens = store.acquired.filter(({ line }) => line).map(({ token }) => token);
    expect(new Set(tokens).size).toBe(1);
    locks.refuseWaiting();
    await waiting;
  });

  it('HF-53 and would release keys of a waiting call releases nothing of the lock that the call gets later', async () => {
    const { clock, store, locks } = scriptedService({ ttl: '1m', wait: '10m' });
    const busy: AcquireOutcome = { ...heldFor(60_000, 'b'), ticket: 7, heldForMs: 10 };
    store.onAcquire = ({ key }) => (key === 'b' ? busy : { status: 'granted', fencingToken: 1 });
    store.onRelease = () => ({ ...OUTAGE, sent: false });
    const waiting = locks.acquire(['a', 'b']);
    await clock.advance(150);
    expect(new Set(store.released.map(({ key }) => key))).toEqual(new Set(['a']));
    const [given] = store.released;
    expect(store.left).toEqual(['b']);
    // The lease of the key was over before the connection was back.
    store.onRelease = () => ({ status: 'not-held' });
    store.onAcquire = () => ({ status: 'granted', fencingToken: 1 });
    await clock.advance(100);
    const lock = await waiting;
    expect(store.acquired.at(-1)?.token).not.toBe(given?.token);
    await clock.advance(10_000);
    expect(new Set(store.released.map(({ token }) => token))).toEqual(new Set([given?.token]));
    store.onRelease = () => ({ status: 'released' });
    await lock.release();
  });
});

describe('a call for several keys', () => {
  it('HF-53 releases also the keys that it held when its messages arrived again', async () => {
    const { clock, store, locks } = scriptedService({ ttl: '1m', wait: '10m' });
    let report: ReleaseListener = () => undefined;
    let beDeaf = (): void => undefined;
    store.listen = async (listener: ReleaseListener, tellDeaf = beDeaf) => {
      [report, beDeaf] = [listener, tellDeaf];
      return 'listening';
    };
    const refused = { ...inLine(), heldForMs: 10 };
    store.onAcquire = () => ({ ...refused, key: 'a' });
    const waiting = locks.acquire(['a', 'b']).catch(() => undefined);
    await settled();
    const reply = deferred<AcquireOutcome>();
    store.onAcquire = () => reply.promise;
    beDeaf();
    await settled();
    report();
    store.onAcquire = () => ({ ...refused, key: 'b' });
    reply.resolve({ status: 'granted', fencingToken: 1 });
    await clock.advance(200);
    expect(store.released).toMatchObject([{ key: 'a' }]);
    locks.refuseWaiting();
    await waiting;
  });
});

describe('a lock that was granted too late', () => {
  it('is given back, and its caller who does not wait told of a timeout', async () => {
    const { clock, store, locks } = scriptedService();
    store.onAcquire = () => {
      clock.block(998);
      return { status: 'granted', fencingToken: 1 };
    };
    const refused = expect(locks.tryAcquire('key')).rejects;
    await refused.toThrow(
      detailed(
        'Could not acquire "key": the lock store is not available (store (timeout): answered after 998 ms, when a TTL of 1000 ms was over ' +
          'already). No work ran without the lock.',
      ),
    );
    expect(store.released).toMatchObject([{ token: store.acquired[0]?.token }]);
  });

  it('is asked for again by those who wait', async () => {
    const { clock, store, locks } = scriptedService();
    store.onAcquire = () => {
      if (store.acquired.length === 1) clock.block(2_000);
      return { status: 'granted', fencingToken: store.acquired.length };
    };
    const waiting = locks.acquire('key', { wait: '1m' });
    await clock.advance(100);
    expect((await waiting).fencingToken).toBe(2);
    await (await waiting).release();
  });
});

describe('while the store does not report releases', () => {
  it('lines look at once, then every 500 ms, until it reports them again', async () => {
    const { clock, store, locks } = scriptedService({ ttl: '1m' });
    store.onAcquire = () => heldFor(60_000);
    let onDeaf = (): void => undefined;
    let report: ReleaseListener = () => undefined;
    store.listen = async (listener: ReleaseListener, tellDeaf?: () => void) => {
      store.listened += 1;
      report = listener;
      onDeaf = tellDeaf ?? onDeaf;
      return 'listening';
    };
    const waiting = locks.acquire('key', { wait: '10m' }).catch(() => undefined);
    await clock.advance(100);
    const before = store.acquired.length;
    onDeaf();
    await settled();
    expect(store.acquired).toHaveLength(before + 1);
    await clock.advance(4_000);
    expect(store.acquired.length).toBeGreaterThanOrEqual(before + 7);
    report(undefined);
    await settled();
    const after = store.acquired.length;
    await clock.advance(4_000);
    expect(store.acquired).toHaveLength(after);
    locks.refuseWaiting();
    await waiting;
  });

  it('and only then, it is asked again whether it does', async () => {
    const { clock, store, locks } = scriptedService({ ttl: '1m' });
    store.onAcquire = ({ key }) => heldFor(60_000, key);
    const first = locks.acquire('a', { wait: '10m' }).catch(() => undefined);
    await clock.advance(20_000);
    const second = locks.acquire('b', { wait: '10m' }).catch(() => undefined);
    await clock.advance(20_000);
    expect(store.listened).toBe(1);
    locks.refuseWaiting();
    await Promise.all([first, second]);
  });
});

describe('a line whose first caller leaves while its request is on its way', () => {
  it('keeps what it is granted for the next one, who asks for another TTL: nobody else is given the key', async () => {
    const { store, locks } = busyService();
    const controller = new AbortController();
    const first = locks.acquire('key', { signal: controller.signal });
    first.catch(() => undefined);
    await settled();
    const second = locks.acquire('key', { ttl: '2m' });
    const { token = '' } = store.acquired.at(-1) ?? {};
    const answer = deferred<AcquireOutcome>();
    store.onAcquire = () => answer.promise;
    store.reportReleased('key', { to: token, inMs: 0 });
    await settled();
    controller.abort();
    store.onAcquire = () => ({ status: 'granted', fencingToken: 9 });
    answer.resolve({ status: 'granted', fencingToken: 8 });
    const lock = await second;
    expect(store.released).toEqual([]);
    expect(store.acquired.slice(-2)).toMatchObject([
      { token, ttlMs: 60_000 },
      { token, ttlMs: 120_000, line: { ticket: 7 } },
    ]);
    expect(lock.fencingToken).toBe(9);
    await lock.release();
    expect(store.released).toMatchObject([{ token }]);
  });
});

describe('a line that cannot go on', () => {
  it('HF-22 fails its callers with what went wrong, and the next caller opens another line', async () => {
    const { store, locks } = scriptedService();
    store.onAcquire = () => ({
      ...heldFor(60_000),
      get holder(): string {
        throw new Error('read too often');
      },
    });
    const waiting = [locks.acquire('key', { wait: '1h' }), locks.acquire('key', { wait: '1h' })];
    const outcomes = await Promise.allSettled(waiting);
    expect(outcomes).toMatchObject([
      { status: 'rejected', reason: { message: 'read too often' } },
      { status: 'rejected', reason: { message: 'read too often' } },
    ]);
    store.onAcquire = () => ({ status: 'granted', fencingToken: 1 });
    expect(await (await locks.acquire('key', { wait: '1h' })).release()).toBe(true);
  });
});
