import { afterEach, describe, expect, it } from '@jest/globals';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { ACQUIRE, EVENTS, FORMER_CHANNELS, HOLD } from '../../lib/observe/channels.js';
import type { AcquireContext, HoldContext } from '../../lib/observe/contexts.js';
import { MetricsFeed } from '../../lib/observe/feed.js';
import { OPEN_STORES, readNodes, type ObservedNode } from '../../lib/observe/nodes.js';
import { began, ended, traced } from '../../lib/observe/traced.js';

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

describe('the channel of an event', () => {
  it('has the name of the event in small letters, as the documentation says', () => {
    const names = Object.values(EVENTS).map(({ name }) => name);
    expect(names).toEqual([
      'holdfast:waiting',
      'holdfast:acquired',
      'holdfast:refused',
      'holdfast:unavailable',
      'holdfast:renewed',
      'holdfast:jeopardy',
      'holdfast:lost',
      'holdfast:released',
      'holdfast:detached',
      'holdfast:attached',
      'holdfast:handed-off',
      'holdfast:limit-mismatch',
      'holdfast:once-attempt',
    ]);
    const former = Object.values(FORMER_CHANNELS).map(({ name }) => name);
    expect(former).toEqual(['holdfast:handed-on', 'holdfast:limits-differ', 'holdfast:once']);
  });
});

describe('a trace', () => {
  const context = (): HoldContext => ({ keys: ['a'], mode: 'exclusive', fencingToken: 1 });

  function errors(): unknown[] {
    const heard: unknown[] = [];
    const listener = (message: unknown): void => void heard.push(message);
    subscribe('tracing:holdfast:hold:error', listener);
    stops.push(() => void unsubscribe('tracing:holdfast:hold:error', listener));
    return heard;
  }

  it('publishes the error of its work, and nothing on the channel of errors without one', async () => {
    const heard = errors();
    await traced(HOLD, context(), () => Promise.resolve('done'));
    began(HOLD, context());
    ended(HOLD, context());
    expect(heard).toEqual([]);
    const [failed, error] = [context(), new Error('mine')];
    await expect(traced(HOLD, failed, () => Promise.reject(error))).rejects.toBe(error);
    expect(heard).toEqual([failed]);
    expect(failed.error).toBe(error);
  });
});

describe('what is read of locks', () => {
  const subject = { keys: ['order:42'], mode: 'exclusive', template: 'order:<id>' } as const;
  const labels = { 'holdfast.key.template': 'order:<id>', 'holdfast.mode': 'exclusive' };

  it('is the number and the age of those that are held, and of those that are waited for', () => {
    const feed = new MetricsFeed(() => () => undefined);
    stops.push(() => feed.stop());
    const hold: HoldContext = { ...subject, fencingToken: 1 };
    const call = (hasWaited: boolean): AcquireContext => ({ ...subject, nested: false, hasWaited });
    const calls = [call(false), ...Array.from({ length: 100 }, () => call(true))];
    began(HOLD, hold);
    for (const each of calls) began(ACQUIRE, each);

    expect(feed.read('lockActive')).toEqual([{ value: 1, labels }]);
    expect(feed.read('waiterActive')).toEqual([{ value: 100, labels }]);
    const ages = [feed.read('lockOldest'), feed.read('waiterOldest')];
    expect(ages).toEqual([
      [{ value: expect.any(Number), labels }],
      [{ value: expect.any(Number), labels }],
    ]);
    for (const [age] of ages) expect(age?.value).toBeLessThan(60); // seconds, and not locks

    ended(HOLD, hold);
    for (const each of calls) ended(ACQUIRE, each);
    for (const id of ['lockActive', 'waiterActive', 'lockOldest', 'waiterOldest'] as const)
      expect(feed.read(id)).toEqual([{ value: 0, labels }]);
  });
});

describe('what is read of servers', () => {
  const problems = {
    unreachable: false,
    refusing: false,
    quarantined: false,
    'no-messages': false,
  } as const;
  const serverOf = (clockOffsetMs?: number, problem?: keyof typeof problems): ObservedNode => ({
    name: 'r1:6379',
    problems: { ...problems, ...(problem && { [problem]: true }) },
    clockOffsetMs,
  });
  const open = (nodesMissing: number, ...nodes: ObservedNode[]): void => {
    const store = { nodes, nodesMissing };
    OPEN_STORES.add(store);
    stops.push(() => void OPEN_STORES.delete(store));
  };
  const labels = { 'server.address': 'r1', 'server.port': 6379 };

  it('is the worst that a service of this process sees', () => {
    open(0, serverOf(-250, 'unreachable'));
    open(2, serverOf(100));
    open(1, serverOf());
    expect(readNodes('nodeClockOffset')).toEqual([{ value: -0.25, labels }]);
    expect(readNodes('nodesMissing')).toEqual([{ value: 2, labels: {} }]);
    const valueOf = (problem: string): unknown =>
      readNodes('nodeProblem').find((each) => each.labels['holdfast.problem'] === problem)?.value;
    expect(valueOf('unreachable')).toBe(1);
    expect(valueOf('refusing')).toBe(0);
  });

  it('says nothing of a clock that is not known', () => {
    open(0, serverOf());
    expect(readNodes('nodeClockOffset')).toEqual([]);
  });
});
