import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import {
  LockConfigurationError,
  LockKeyError,
  LockLostError,
  LockServiceClosedError,
  type Lead,
} from 'nestjs-holdfast';
import type { LeadEnded } from '../../lib/leader/lead.js';
import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';
import { LockEngine } from '../../lib/engine/lock-engine.js';
import { thisMachine } from '../../lib/engine/machine.js';
import { systemRuntime } from '../../lib/time/runtime.js';
import { scriptedEngine } from '../engine/scripted-engine.js';
import { deferred, eventually } from '../support/eventually.js';
import { Locks } from '../support/locks.js';
import { watchRejections } from '../support/scripted-service.js';
import { FORBIDDEN, heldFor, OUTAGE } from '../support/scripted-store.js';
import { settled } from '../support/virtual-runtime.js';
import { storeOption } from '../../lib/options/location.js';

const rejections = watchRejections();
afterAll(() => rejections.expectNone());

let services: LockEngine[] = [];
afterEach(async () => {
  await Promise.all(services.map((service) => service.shutdown(0)));
  services = [];
});

/** Instances over one store. */
function instances(count: number): LockEngine[] {
  const store = new MemoryLockStore();
  const made = Array.from(
    { length: count },
    () => new Locks({ store: storeOption(store), ttl: '2s' }),
  );
  services.push(...made);
  return made;
}

/** Stands for election, and keeps what it is told. */
function candidate(locks: LockEngine, options: { rotateEvery?: number } = {}) {
  const leads: Lead[] = [];
  const ended: LeadEnded[] = [];
  const leadership = locks.lead('reports', {
    ...options,
    onElected: (lead) => void leads.push(lead),
    onLost: (end) => void ended.push(end),
  });
  return { leadership, leads, ended };
}

describe('a leader', () => {
  it('is one of several instances, and the next one leads in a later term when it stops', async () => {
    const [one, two] = instances(2) as [LockEngine, LockEngine];
    const first = candidate(one);
    await eventually(() => first.leads.length === 1);
    const second = candidate(two);
    expect(first.leadership.isLeader).toBe(true);
    expect(first.leadership.term).toBe(first.leads[0]?.term);
    expect(second.leadership.isLeader).toBe(false);
    expect(second.leadership.term).toBeUndefined();
    await first.leadership.stop();
    expect(first.leads[0]?.signal.reason).toMatchObject({ name: 'AbortError' });
    expect(first.ended).toMatchObject([{ name: 'reports', reason: 'stopped' }]);
    await eventually(() => second.leads.length === 1);
    expect(second.leads[0]?.term).toBeGreaterThan(first.leads[0]?.term ?? Infinity);
    expect(second.leads[0]?.signal.aborted).toBe(false);
  });

  it('goes on leading when onElected has returned, inside a section of the name', async () => {
    const [one] = instances(1) as [LockEngine];
    const seen = deferred<number>();
    const leadership = one.lead('reports', {
      onElected: ({ assertLeading }) => {
        assertLeading();
        one.assertHeld('reports');
        seen.resolve(one.holdCount('reports'));
      },
    });
    expect(await seen.promise).toBe(1);
    await settled();
    expect(leadership.isLeader).toBe(true);
  });

  it('is no part of the section that it was made in: others may wait for that one', async () => {
    const [one] = instances(1) as [LockEngine];
    const mayAsk = deferred();
    const asked = deferred();
    const result = deferred<unknown>();
    const first = one.lead('reports', {
      onElected: async () => {
        await mayAsk.promise;
        const waiting = one.run('setup', { wait: '20s' }, () => 'ran');
        asked.resolve();
        result.resolve(await waiting.catch((error: unknown) => error));
      },
    });
    await eventually(() => first.isLeader);
    const second = deferred<Lead>();
    await one.run('setup', async () => {
      one.lead('reports', { onElected: second.resolve });
      mayAsk.resolve();
      await asked.promise;
      await settled();
    });
    expect(await result.promise).toBe('ran');
    await first.stop();
    expect((await second.promise).signal.aborted).toBe(false);
  });

  it('steps down by hand when its work has ended, so that the work of two never overlaps', async () => {
    const [one, two] = instances(2) as [LockEngine, LockEngine];
    const log: string[] = [];
    const mayEnd = deferred();
    const elected = deferred<Lead>();
    const first = one.lead('reports', {
      onElected: async (lead) => {
        elected.resolve(lead);
        await mayEnd.promise;
        log.push('first ends');
      },
    });
    const lead = await elected.promise;
    const second = deferred();
    two.lead('reports', {
      onElected: () => {
        log.push('second begins');
        second.resolve();
      },
    });
    const stepping = first.stepDown();
    expect(lead.signal.aborted).toBe(true);
    expect(() => {
      lead.assertLeading();
    }).toThrow(expect.objectContaining({ name: 'AbortError' }));
    expect(first.isLeader).toBe(false);
    await settled();
    expect(await two.inspect('reports')).toMatchObject({ held: true });
    mayEnd.resolve();
    await stepping;
    await second.promise;
    expect(log).toEqual(['first ends', 'second begins']);
  });

  it('stands again a second after it has stepped down', async () => {
    const { locks, clock } = scriptedEngine();
    const { leads, ended } = candidate(locks);
    await clock.advance(10);
    leads[0]?.stepDown();
    await clock.advance(900);
    expect(leads).toHaveLength(1);
    await clock.advance(200);
    expect(leads).toHaveLength(2);
    expect(ended).toMatchObject([{ reason: 'stepped-down' }]);
    await locks.shutdown(0);
  });

  it('stands aside for a second when it steps down, also when its lock was over by then: that is a loss', async () => {
    const { locks, clock } = scriptedEngine();
    const { leads, ended } = candidate(locks);
    await clock.advance(10);
    clock.block(1_500);
    leads[0]?.stepDown();
    await clock.advance(900);
    expect(leads).toHaveLength(1);
    await clock.advance(200);
    expect(leads).toHaveLength(2);
    expect(ended).toMatchObject([{ reason: 'lost', error: expect.any(LockLostError) }]);
    await locks.shutdown(0);
  });

  it('is told when it loses the lead, and stands again when its work has ended', async () => {
    const { locks, clock } = scriptedEngine();
    const work = deferred();
    const leads: Lead[] = [];
    const ended: LeadEnded[] = [];
    const leadership = locks.lead('reports', {
      onElected: async (lead) => {
        leads.push(lead);
        if (leads.length === 1) await work.promise;
      },
      onLost: (end) => void ended.push(end),
    });
    await clock.advance(10);
    locks.lose('reports');
    expect(leadership.isLeader).toBe(false);
    await clock.advance(100);
    expect(leads[0]?.signal.reason).toBeInstanceOf(LockLostError);
    expect(ended).toMatchObject([{ reason: 'lost', error: { reason: 'stolen' } }]);
    await clock.advance(4_000);
    expect(leads).toHaveLength(1);
    work.resolve();
    await clock.advance(10);
    expect(leads).toHaveLength(2);
    await locks.shutdown(0);
  });

  it('is warned of when its work goes on long after the term', async () => {
    const { locks, clock, warnings } = scriptedEngine();
    const work = deferred();
    const leadership = locks.lead('reports', { onElected: () => work.promise });
    await clock.advance(10);
    void leadership.stepDown();
    await clock.advance(4_900);
    expect(warnings).toEqual([]);
    await clock.advance(200);
    expect(warnings).toEqual([expect.stringContaining('have the work end when its signal aborts')]);
    work.resolve();
    await settled();
    await locks.shutdown(0);
  });

  it('that fails steps down, is logged, and stands again after 1 s, 2 s, 4 s, up to a minute', async () => {
    const { locks, clock, errors } = scriptedEngine();
    const at: number[] = [];
    const failure = new Error('no report');
    const ended: LeadEnded[] = [];
    locks.lead('reports', {
      onElected: () => {
        at.push(clock.now().monotonicMs);
        if (at.length % 2 === 0) throw failure;
        return Promise.reject(failure);
      },
      onLost: (end) => void ended.push(end),
    });
    await clock.advance(5 * 60_000);
    const pauses = at.slice(1).map((each, index) => Math.round((each - (at[index] ?? 0)) / 1_000));
    expect(pauses.slice(0, 9)).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
    expect(errors[0]).toEqual([
      expect.stringMatching(/^The work of the leader of "reports" failed in term \d+$/),
      failure,
    ]);
    expect(ended[0]).toMatchObject({ reason: 'failed', error: failure });
    await locks.shutdown(0);
  });

  it('is not said to have failed when its work ends with the reason of the signal', async () => {
    const { locks, clock, errors } = scriptedEngine();
    const leadership = locks.lead('reports', {
      onElected: ({ signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reject(signal.reason as Error);
          });
        }),
    });
    await clock.advance(10);
    await leadership.stop();
    expect(errors).toEqual([]);
    await locks.shutdown(0);
  });

  it('survives an onLost that throws', async () => {
    const { locks, clock, errors } = scriptedEngine();
    const leads: Lead[] = [];
    locks.lead('reports', {
      onElected: (lead) => void leads.push(lead),
      onLost: () => {
        throw new Error('not told');
      },
    });
    await clock.advance(10);
    leads[0]?.stepDown();
    await clock.advance(2_000);
    expect(leads).toHaveLength(2);
    expect(errors).toEqual([['onLost of the leader of "reports" failed', expect.any(Error)]]);
    await locks.shutdown(0);
  });
});

describe('a candidate', () => {
  it('waits through an outage, logs a refusal that lasts once, and asks again every 5 s', async () => {
    const { locks, clock, store, errors } = scriptedEngine();
    const acquire = store.onAcquire;
    store.onAcquire = () => OUTAGE;
    const { leads } = candidate(locks);
    await clock.advance(60_000);
    expect([leads, errors]).toEqual([[], []]);
    store.onAcquire = () => FORBIDDEN;
    await clock.advance(10 * 60_000);
    expect(errors).toEqual([
      ['This instance could not be a candidate for the leadership "reports"', expect.any(Error)],
    ]);
    store.onAcquire = acquire;
    await clock.advance(5_000);
    expect(leads).toHaveLength(1);
    await locks.shutdown(0);
  });

  it('that is stopped in the moment of its election is not told of the end of a term that it was not told of', async () => {
    const seen = new Set<string>();
    for (let turns = 0; turns < 40; turns += 1) {
      const { locks, clock } = scriptedEngine();
      const { leadership, leads, ended } = candidate(locks);
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      await Promise.all([leadership.stop(), clock.advance(10)]);
      expect(ended.map(({ term }) => term)).toEqual(leads.map(({ term }) => term));
      seen.add(leads.length === 0 ? 'not elected' : 'elected');
      await locks.shutdown(0);
    }
    expect(seen.size).toBe(2);
  });

  it('leaves the line when it is stopped, and does so by "await using"', async () => {
    const { locks, clock, store } = scriptedEngine();
    store.onAcquire = () => heldFor(60_000);
    {
      await using leadership = locks.lead('reports', { onElected: () => undefined });
      await clock.advance(100);
      expect(leadership.isLeader).toBe(false);
    }
    expect(store.left).toEqual(['reports']);
    await locks.shutdown(0);
    expect(clock.timers).toBe(0);
  });

  it('steps down at the shutdown, which waits for its work and lets nobody stand any more', async () => {
    const [one] = instances(1) as [LockEngine];
    const log: string[] = [];
    const elected = deferred();
    one.lead('reports', {
      onElected: async ({ signal }) => {
        elected.resolve();
        await new Promise((resolve) => {
          signal.addEventListener('abort', resolve);
        });
        await settled();
        log.push('work ended');
      },
      onLost: ({ reason }) => void log.push(reason),
    });
    await elected.promise;
    await one.shutdown(10_000);
    expect(log).toEqual(['stopped', 'work ended']);
    const stand = () => one.lead('reports', { onElected: () => undefined });
    expect(stand).toThrow(LockServiceClosedError);
    expect(stand).toThrow(expect.objectContaining({ keys: ['reports'] }));
  });

  it.each([
    [{}, 'Option "onElected" must be a function'],
    [{ onElected: 1 }, 'Option "onElected" must be a function'],
    [{ onElected: () => 1, wait: '1s' }, 'A candidate waits until it is elected'],
    [{ onElected: () => 1, rotateEvery: 10 }, 'Option "rotateEvery" must be a duration'],
    [{ onElected: () => 1, ttl: 1 }, 'Option "ttl" must be a duration'],
    [{ onElected: () => 1, rotate: '1h' }, 'lead() has no option "rotate"'],
  ])('with options %p is refused at once', (options, problem) => {
    const { locks } = scriptedEngine();
    const stand = () => locks.lead('reports', options as never);
    expect(stand).toThrow(LockConfigurationError);
    expect(stand).toThrow(problem);
  });

  it('with a name that cannot be a key is refused at once', () => {
    const { locks } = scriptedEngine();
    expect(() => locks.lead('{reports}', { onElected: () => 1 })).toThrow(LockKeyError);
  });
});

describe('rotateEvery', () => {
  it('gives each instance its turn, and leaves a leader alone that nobody waits for', async () => {
    const [one, two] = instances(2) as [LockEngine, LockEngine];
    const first = candidate(one, { rotateEvery: 1_000 });
    await eventually(() => first.leads.length === 1);
    await new Promise((resolve) => setTimeout(resolve, 1_300));
    expect(first.ended).toEqual([]);
    const second = candidate(two, { rotateEvery: 1_000 });
    await eventually(() => second.leads.length >= 1 && first.leads.length >= 2, {
      withinMs: 20_000,
    });
    expect(first.ended[0]).toMatchObject({ reason: 'rotated' });
    expect(second.ended[0]).toMatchObject({ reason: 'rotated' });
  }, 30_000);
});

describe('getLeader()', () => {
  it('names the instance that leads, its term and since when, or nobody', async () => {
    const store = new MemoryLockStore();
    const nobodyReads = (): void => undefined;
    const [one, two] = ['one', 'two'].map((application) => {
      const service = new LockEngine(
        { store: storeOption(store), ttl: '5s', instance: { application } },
        {
          runtime: systemRuntime,
          log: { warn: nobodyReads, error: nobodyReads },
          machine: thisMachine(),
        },
      );
      services.push(service);
      return service;
    }) as [LockEngine, LockEngine];
    await Promise.all([one.open(), two.open()]);
    expect(await one.getLeader('reports')).toBeNull();
    const { leads, leadership } = candidate(one);
    await eventually(() => leads.length === 1);
    const facts = { application: 'one', pid: process.pid, term: leads[0]?.term };
    await eventually(async () => (await two.getLeader('reports'))?.application === 'one');
    expect(await two.getLeader('reports')).toMatchObject({ ...facts, isSelf: false });
    const own = await one.getLeader('reports');
    expect(own).toMatchObject({ ...facts, isSelf: true });
    expect(own?.remainingMs).toBeGreaterThan(1_000);
    await leadership.stop();
    expect(await two.getLeader('reports')).toBeNull();
  });
});
