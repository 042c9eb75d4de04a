import { afterAll, describe, expect, it } from '@jest/globals';
import type { AcquireOutcome, Held, LinePlace } from '../../lib/store/lock-store.js';
import { deferred } from '../support/eventually.js';
import { scriptedService, watchRejections } from '../support/scripted-service.js';
import { heldFor, OUTAGE } from '../support/scripted-store.js';
import { settled } from '../support/virtual-runtime.js';

const rejections = watchRejections();
afterAll(() => rejections.expectNone());

const inLine = (remainingMs: number, ticket = 7): Held => ({ ...heldFor(remainingMs), ticket });

/** A caller who stands in a line in which the first gets the lock; its holder's lease lasts for a minute. */
async function waiterInLine() {
  const scripted = scriptedService({ wait: '10m', ttl: '1m' });
  const { store, locks } = scripted;
  store.onAcquire = ({ line }) => (line === undefined ? heldFor(60_000) : inLine(60_000));
  const left: (number | undefined)[] = [];
  const leave = store.leave.bind(store);
  store.leave = (lease, line?: LinePlace) => {
    left.push(line?.ticket);
    return leave(lease);
  };
  const controller = new AbortController();
  const waiting = locks.acquire('key', { signal: controller.signal });
  waiting.catch(() => undefined);
  await settled();
  const token = store.acquired.at(-1)?.token ?? '';
  const looks = (): number => store.acquired.length;
  return { ...scripted, left, controller, waiting, token, looks };
}

describe('whoever stands in a line of the store', () => {
  it('asks with the same token and the same ticket each time', async () => {
    const { clock, store, token, controller } = await waiterInLine();
    await clock.advance(200_000);
    const inOrder = store.acquired.filter(({ line }) => line !== undefined);
    expect(inOrder.length).toBeGreaterThan(3);
    expect(new Set(inOrder.map((request) => request.token))).toEqual(new Set([token]));
    const [first, ...later] = inOrder.map(({ line }) => line?.ticket);
    expect(first).toBeUndefined();
    expect(new Set(later)).toEqual(new Set([7]));
    controller.abort();
  });

  it('keeps the ticket through an outage, with a token that is new', async () => {
    const { clock, store, token, controller } = await waiterInLine();
    store.onAcquire = () => OUTAGE;
    store.reportReleased();
    await settled();
    expect(store.acquired.at(-1)?.token).toBe(token);
    store.onAcquire = () => inLine(60_000);
    await clock.advance(100);
    const last = store.acquired.at(-1);
    expect(last?.token).not.toBe(token);
    expect(last?.line?.ticket).toBe(7);
    controller.abort();
  });

  it('has another ticket for the next lock', async () => {
    const { store, locks, token, waiting } = await waiterInLine();
    store.onAcquire = () => ({ status: 'granted', fencingToken: 1 });
    const next = locks.acquire('key', { wait: '1m' });
    store.reportReleased('key', { to: token, inMs: 0 });
    const lock = await waiting;
    store.onAcquire = () => inLine(60_000, 8);
    await lock.release();
    await settled();
    expect(store.acquired.at(-1)?.line?.ticket).toBeUndefined();
    store.onAcquire = () => ({ status: 'granted', fencingToken: 2 });
    store.reportReleased('key', { to: store.acquired.at(-1)?.token ?? '', inMs: 0 });
    await (await next).release();
  });

  it('looks when it is called, and not when others are', async () => {
    const { store, token, looks, controller } = await waiterInLine();
    const before = looks();
    store.reportReleased('key', { to: 'somebody else', inMs: 0 });
    store.reportReleased('key');
    await settled();
    expect(looks()).toBe(before);
    store.reportReleased('key', { to: token, inMs: 0 });
    await settled();
    expect(looks()).toBe(before + 1);
    controller.abort();
  });

  it('looks when calls may have been missed', async () => {
    const { store, looks, controller } = await waiterInLine();
    const before = looks();
    store.reportReleased();
    await settled();
    expect(looks()).toBe(before + 1);
    controller.abort();
  });

  it('as the runner-up looks when the claim of the first is over, and not before', async () => {
    const { clock, store, token, looks, controller } = await waiterInLine();
    const before = looks();
    store.reportReleased('key', { to: token, inMs: 1_000 });
    await clock.advance(990);
    expect(looks()).toBe(before);
    await clock.advance(40);
    expect(looks()).toBe(before + 1);
    controller.abort();
  });

  it('does not sleep longer than it would have because it is the runner-up', async () => {
    const { clock, store, token, looks, controller } = await waiterInLine();
    const before = looks();
    store.reportReleased('key', { to: token, inMs: 600_000 });
    await clock.advance(5_100);
    expect(looks()).toBe(before + 1);
    controller.abort();
  });

  it.each([0, 1_000])(
    'looks again when it is called (in %i ms) while a look is on its way, whose answer may be older',
    async (inMs) => {
      const { clock, store, token, looks, controller } = await waiterInLine();
      const answer = deferred<AcquireOutcome>();
      store.onAcquire = () => answer.promise;
      store.reportReleased('key', { to: token, inMs: 0 });
      await settled();
      const before = looks();
      store.reportReleased('key', { to: token, inMs });
      // What the old holder had left, seen before the key was given to the first in line.
      answer.resolve(inLine(60_000));
      store.onAcquire = () => inLine(1_000);
      await clock.advance(100);
      expect(looks()).toBe(before + 1);
      controller.abort();
    },
  );
});

describe('a call that nobody waits for any more', () => {
  it('is passed on: what was given is taken out of the store', async () => {
    const { store, token, controller, left } = await waiterInLine();
    controller.abort();
    await settled();
    expect(left).toEqual([7]);
    store.reportReleased('key', { to: token, inMs: 0 });
    await settled();
    expect(store.left).toEqual(['key', 'key']);
  });

  it('is nothing when it was for the runner-up: it was given nothing', async () => {
    const { store, token, controller } = await waiterInLine();
    controller.abort();
    await settled();
    store.reportReleased('key', { to: token, inMs: 1_000 });
    await settled();
    expect(store.left).toEqual(['key']);
  });

  it('ends no lease of that token', async () => {
    const { store, token, waiting } = await waiterInLine();
    store.onAcquire = () => ({ status: 'granted', fencingToken: 1 });
    store.reportReleased('key', { to: token, inMs: 0 });
    const lock = await waiting;
    await settled();
    store.reportReleased('key', { to: token, inMs: 0 });
    await settled();
    expect(store.left).toEqual([]);
    expect(store.released).toEqual([]);
    expect(await lock.release()).toBe(true);
  });

  it('touches no token of another process', async () => {
    const { store, controller } = await waiterInLine();
    controller.abort();
    await settled();
    store.reportReleased('key', { to: 'holdfast:elsewhere.token', inMs: 0 });
    await settled();
    expect(store.left).toEqual(['key']);
  });
});
