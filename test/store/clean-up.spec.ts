import { describe, expect, it } from '@jest/globals';
import type { ReleaseOutcome, Unavailable } from '../../lib/store/lock-store.js';
import { Scheduler } from '../../lib/time/scheduler.js';
import { CleanUp } from '../../lib/store/clean-up.js';
import { deferred } from '../support/eventually.js';
import { scriptedService } from '../support/scripted-service.js';
import { FORBIDDEN, OUTAGE, ScriptedStore } from '../support/scripted-store.js';
import { settled, VirtualRuntime } from '../support/virtual-runtime.js';

const DAY_MS = 86_400_000;

function setUp() {
  const clock = new VirtualRuntime();
  const store = new ScriptedStore();
  const removed: string[] = [];
  const cleanUp = new CleanUp({
    store,
    scheduler: new Scheduler(clock),
    onRemoved: (keys) => removed.push(...keys),
  });
  const add = (count: number, forMs = DAY_MS): void => {
    for (let i = 0; i < count; i += 1) {
      const id = String(cleanUp.size);
      cleanUp.add({ keys: [`key:${id}`], token: `token:${id}`, ttlMs: forMs });
    }
  };
  return { clock, store, removed, cleanUp, add };
}

/** One token, which is removed several times: the test answers each request. */
function oneToken() {
  const clock = new VirtualRuntime();
  const asked: { readonly keepMs: number; readonly answer: (outcome: ReleaseOutcome) => void }[] =
    [];
  const release = (_lease: unknown, _lastToken?: number, keepMs = 0): Promise<ReleaseOutcome> => {
    const { promise, resolve: answer } = deferred<ReleaseOutcome>();
    asked.push({ keepMs, answer });
    return promise;
  };
  const cleanUp = new CleanUp({
    store: { release },
    scheduler: new Scheduler(clock),
    onRemoved: () => undefined,
  });
  const remove = (keepMs: number): void => {
    cleanUp.add({ keys: ['key'], token: 'token', ttlMs: DAY_MS }, keepMs);
  };
  return { clock, cleanUp, asked, remove };
}

describe('the clean-up', () => {
  it('sends the first request at once, in the same step', async () => {
    const { clock, store, removed, add } = setUp();
    add(3);
    expect(store.released).toHaveLength(3);
    await settled();
    expect(removed).toEqual(['key:0', 'key:1', 'key:2']);
    expect(clock.timers).toBe(0);
  });

  it('tries again what was asked for last, whatever the reply to an earlier request for that token', async () => {
    const { clock, store, cleanUp } = setUp();
    const [kept, removed] = [deferred<ReleaseOutcome>(), deferred<ReleaseOutcome>()];
    const answers = [kept, removed];
    store.onRelease = () => answers.shift()?.promise ?? { status: 'released' };
    const lease = { keys: ['key'], token: 'token', ttlMs: DAY_MS };
    cleanUp.add(lease, 5_000);
    cleanUp.add(lease);
    kept.resolve({ status: 'released' });
    removed.resolve(OUTAGE);
    await clock.advance(0);
    expect(cleanUp.size).toBe(1);
    await clock.advance(60_000);
    expect(store.released).toHaveLength(3);
    expect(cleanUp.size).toBe(0);
  });

  it('of many sends few requests during an outage, with pauses of up to 5 s', async () => {
    const { clock, store, add } = setUp();
    store.onRelease = () => OUTAGE;
    add(900);
    await clock.advance(60_000);
    const before = store.released.length;
    expect(before).toBeLessThanOrEqual(900 + 20 * 10);
    await clock.advance(60_000);
    const rounds = (store.released.length - before) / 10;
    expect(rounds).toBeGreaterThanOrEqual(11);
    expect(rounds).toBeLessThanOrEqual(13);
    expect(clock.timers).toBe(1);
  });

  it('works everything off, ten at a time, when the store answers again', async () => {
    const { clock, store, removed, cleanUp, add } = setUp();
    store.onRelease = () => OUTAGE;
    add(900);
    await clock.advance(60_000);
    let [onTheirWay, most] = [0, 0];
    store.onRelease = async () => {
      most = Math.max(most, (onTheirWay += 1));
      await Promise.resolve();
      onTheirWay -= 1;
      return { status: 'released' };
    };
    await clock.advance(5_000);
    expect(removed).toHaveLength(900);
    expect(most).toBe(10);
    expect(cleanUp.size).toBe(0);
    expect(clock.timers).toBe(0);
  });

  it('starts its pauses anew when the store has answered anybody', async () => {
    const { clock, store, cleanUp, add } = setUp();
    store.onRelease = () => OUTAGE;
    add(5);
    await clock.advance(59_000);
    store.onRelease = () => ({ status: 'released' });
    add(1);
    await clock.advance(50);
    expect(cleanUp.size).toBe(0);
    expect(clock.timers).toBe(0);
  });

  it('asks twice more, with growing pauses, about what is not there', async () => {
    const { clock, store, cleanUp, add } = setUp();
    store.onRelease = () => ({ status: 'not-held' });
    add(1);
    await clock.advance(400);
    expect(store.released).toHaveLength(1);
    await clock.advance(200);
    expect(store.released).toHaveLength(2);
    await clock.advance(4_000);
    expect(store.released).toHaveLength(2);
    await clock.advance(DAY_MS);
    expect(store.released).toHaveLength(3);
    expect(cleanUp.size).toBe(0);
    expect(clock.timers).toBe(0);
  });

  it('removes what a late request left after the first answer', async () => {
    const { clock, store, removed, add } = setUp();
    const answers: ReleaseOutcome[] = [{ status: 'not-held' }];
    store.onRelease = () => answers.shift() ?? { status: 'released' };
    add(1);
    await clock.advance(1_000);
    expect(removed).toEqual(['key:0']);
    expect(clock.timers).toBe(0);
  });

  it('lets a crowd wait for the round', async () => {
    const { clock, store, removed, add } = setUp();
    const gate = deferred<ReleaseOutcome>();
    store.onRelease = () => gate.promise;
    add(1_500);
    expect(store.released).toHaveLength(1_000);
    gate.resolve({ status: 'released' });
    await clock.advance(100);
    expect(removed).toHaveLength(1_500);
    expect(clock.timers).toBe(0);
  });

  it('gives everything up when its time is over', async () => {
    const { clock, store, cleanUp, add } = setUp();
    store.onRelease = () => OUTAGE;
    add(100, 30_000);
    await clock.advance(36_000);
    expect(cleanUp.size).toBe(0);
    expect(clock.timers).toBe(0);
  });

  it('goes on when the wall clock is set forward, and ends by the other clock', async () => {
    const { clock, store, removed, cleanUp, add } = setUp();
    store.onRelease = () => OUTAGE;
    add(2, 30_000);
    await settled();
    clock.suspend(3_600_000);
    await clock.advance(20_000);
    store.onRelease = ({ token }) => (token === 'token:0' ? { status: 'released' } : OUTAGE);
    await clock.advance(5_000);
    expect(removed).toEqual(['key:0']);
    expect(cleanUp.size).toBe(1);
    await clock.advance(11_000);
    expect(cleanUp.size).toBe(0);
    expect(clock.timers).toBe(0);
  });

  it('lets one that always fails keep nobody else from their turn', async () => {
    const { clock, store, removed, add } = setUp();
    store.onRelease = () => OUTAGE;
    add(40);
    await settled();
    store.onRelease = ({ token }) =>
      Number(token.slice(6)) < 10 ? OUTAGE : { status: 'released' };
    await clock.advance(10_000);
    expect(removed).toHaveLength(30);
  });

  it('goes on past a crowd that is refused, which it asks again every 5 s', async () => {
    const { clock, store, removed, add } = setUp();
    store.onRelease = () => FORBIDDEN;
    add(1_100);
    await clock.advance(200);
    expect(store.released).toHaveLength(1_100);
    store.onRelease = ({ token }) => (token === 'token:1100' ? { status: 'released' } : FORBIDDEN);
    add(1);
    await clock.advance(100);
    expect(removed).toEqual(['key:1100']);
    await clock.advance(60_000);
    expect(store.released).toHaveLength(1_101 + 12 * 1_100);
    store.onRelease = () => ({ status: 'released' });
    await clock.advance(5_100);
    expect(removed).toHaveLength(1_101);
    expect(clock.timers).toBe(0);
  });

  it('goes on in its last round past those that get no reply', async () => {
    const { store, removed, cleanUp, add } = setUp();
    store.onRelease = () => OUTAGE;
    add(2_500);
    await settled();
    store.onRelease = ({ token }) => (token === 'token:7' ? OUTAGE : { status: 'released' });
    await cleanUp.finish();
    expect(removed).toHaveLength(2_499);
  });

  it('asks for none a second time while its first request is on its way', async () => {
    const { clock, store, add } = setUp();
    const gate = deferred<ReleaseOutcome>();
    store.onRelease = ({ token }) => (token === 'token:0' ? gate.promise : OUTAGE);
    add(2);
    await clock.advance(10_000);
    const tokens = store.released.map(({ token }) => token);
    expect(tokens.filter((token) => token === 'token:0')).toHaveLength(1);
    expect(tokens.length).toBeGreaterThan(3);
  });

  it('begins no second round during a round', async () => {
    const { clock, store, add } = setUp();
    store.onRelease = () => OUTAGE;
    add(30);
    await settled();
    const gate = deferred<ReleaseOutcome>();
    store.onRelease = ({ token }) => (token === 'token:30' ? OUTAGE : gate.promise);
    await clock.advance(100);
    expect(store.released).toHaveLength(30 + 10);
    add(1);
    await clock.advance(60_000);
    expect(store.released).toHaveLength(30 + 10 + 1);
    gate.resolve({ status: 'released' });
  });

  it('stops at a request that never left the process, also where no second one would be better', async () => {
    const { clock, store, add } = setUp();
    store.onRelease = () => ({ ...FORBIDDEN, sent: false });
    add(100);
    await clock.advance(1_000);
    const before = store.released.length;
    await clock.advance(5_000);
    expect(store.released.length - before).toBeLessThanOrEqual(2 * 10);
  });

  it('leaves the line of a token also when that is to be removed a second time', async () => {
    const { clock, store, cleanUp } = setUp();
    store.onRelease = () => OUTAGE;
    const lease = { keys: ['key'], token: 'token', ttlMs: DAY_MS };
    const leaves = { id: 'line', ttlMs: DAY_MS, ticket: undefined };
    cleanUp.add({ ...lease, leaves });
    cleanUp.add(lease);
    await clock.advance(60_000);
    expect(store.released.length).toBeGreaterThan(2);
    for (const released of store.released) expect(released).toMatchObject({ leaves });
  });

  it('asks again for a second removal of a token, however the first one is answered', async () => {
    const { clock, cleanUp, asked, remove } = oneToken();
    remove(5_000);
    remove(0);
    asked[0]?.answer({ status: 'released' });
    asked[1]?.answer(OUTAGE);
    await clock.advance(100);
    expect(asked.map(({ keepMs }) => keepMs)).toEqual([5_000, 0, 0]);
    asked[2]?.answer({ status: 'released' });
    await settled();
    expect(cleanUp.size).toBe(0);
    expect(clock.timers).toBe(0);
  });

  it('asks again for it also when the first one has no answer, in a round', async () => {
    const { clock, asked, remove } = oneToken();
    remove(5_000);
    asked[0]?.answer(OUTAGE);
    await clock.advance(100);
    remove(0);
    asked[2]?.answer(OUTAGE);
    asked[1]?.answer(OUTAGE);
    await clock.advance(1_000);
    expect(asked.map(({ keepMs }) => keepMs > 0)).toEqual([true, true, false, false]);
  });

  it('that is closed sends nothing and sets no timer', async () => {
    const { clock, store, cleanUp, add } = setUp();
    store.onRelease = () => OUTAGE;
    add(10);
    await clock.advance(0);
    cleanUp.close();
    add(10);
    await clock.advance(DAY_MS);
    expect(store.released).toHaveLength(10);
    expect(clock.timers).toBe(0);
  });

  it('of a thousand attempts that got no answer sends little while the store is silent', async () => {
    const { clock, store, locks } = scriptedService({ ttl: '10m' });
    store.onAcquire = () => OUTAGE;
    store.onRelease = () => OUTAGE;
    const attempts = Array.from({ length: 1_000 }, (_, i) => locks.tryAcquire(`key:${String(i)}`));
    await Promise.allSettled(attempts);
    const first = store.released.length;
    expect(first).toBe(1_000);
    await clock.advance(30_000);
    expect(store.released.length - first).toBeLessThanOrEqual(13 * 10);
    await locks.shutdown(0);
  });

  it('is not asked for when the request never left the process', async () => {
    const { clock, store, locks } = scriptedService();
    const unsent: Unavailable = { ...OUTAGE, sent: false };
    store.onAcquire = () => unsent;
    await expect(locks.tryAcquire('key')).rejects.toMatchObject({ nodes: OUTAGE.nodes });
    expect(store.released).toEqual([]);
    expect(clock.timers).toBe(0);
  });
});
