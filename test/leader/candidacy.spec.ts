import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { LockServiceClosedError } from '../../lib/errors.js';
import type { Lead, LeadEnded } from '../../lib/leader/lead.js';
import { Leaders, Leadership, type Candidacy } from '../../lib/leader/leadership.js';
import type { Scope } from '../../lib/sections/scope.js';
import { Scheduler } from '../../lib/time/scheduler.js';
import { deferred } from '../support/eventually.js';
import { settled, VirtualRuntime } from '../support/virtual-runtime.js';

/** The lock of a term, which the test may end. */
class GrantedLock {
  readonly lost = new AbortController();
  isFinished = false;

  constructor(readonly fencingToken: number) {}

  get scope(): Scope {
    const { signal } = this.lost;
    const { fencingToken } = this;
    const lock = { fencingToken, isHeld: true, signal, assertHeld: () => undefined };
    const section = { inside: (work: () => unknown) => work() };
    const finish = async (): Promise<void> => {
      this.isFinished = true;
    };
    return { lock, section, finish } as unknown as Scope;
  }
}

/** A candidate whose lock, clock and competitors the test has in hand. By default it is elected whenever it asks. */
function stage(
  options: Partial<Candidacy> = {},
  stand = (candidacy: Candidacy): Leadership => new Leadership(candidacy),
) {
  const clock = new VirtualRuntime();
  const leads: Lead[] = [];
  const ended: LeadEnded[] = [];
  const warnings: unknown[] = [];
  const errors: unknown[][] = [];
  const locks: GrantedLock[] = [];
  const leadership = stand({
    name: 'reports',
    rotateEveryMs: undefined,
    onElected: (lead) => void leads.push(lead),
    onLost: (end) => void ended.push(end),
    log: {
      warn: (message) => void warnings.push(message),
      error: (...said) => void errors.push(said),
    },
    scheduler: new Scheduler(clock),
    open: async () => {
      const lock = new GrantedLock(locks.length + 1);
      locks.push(lock);
      return lock.scope;
    },
    othersWait: async () => true,
    ...options,
  });
  return { clock, leads, ended, warnings, errors, locks, leadership };
}

/** Whether something resolves without any time passing. */
async function isImmediate(promise: Promise<unknown>): Promise<boolean> {
  let isDone = false;
  void promise.then(() => (isDone = true));
  await settled();
  return isDone;
}

describe('a term', () => {
  it('does not begin where the lock is lost before the work does', async () => {
    const lock = new GrantedLock(1);
    lock.lost.abort(new Error('lost'));
    const opening = [Promise.resolve(lock.scope), new Promise<Scope>(() => undefined)];
    const { leads, ended } = stage({ open: async () => opening.shift()! });
    await settled();
    expect(leads).toEqual([]);
    expect(ended).toEqual([]);
    expect(lock.isFinished).toBe(true);
  });

  it('does not begin where the candidate is stopped in the moment of its election', async () => {
    const lock = new GrantedLock(1);
    const opening = deferred<Scope>();
    const { leads, ended, leadership } = stage({ open: () => opening.promise });
    const stopping = leadership.stop();
    opening.resolve(lock.scope);
    await stopping;
    expect(leads).toEqual([]);
    expect(ended).toEqual([]);
    expect(lock.isFinished).toBe(true);
  });

  it('ends by stepDown() of the candidate, which does nothing where it does not lead', async () => {
    const opening = deferred<Scope>();
    const { clock, ended, leadership } = stage({ open: () => opening.promise });
    expect(await isImmediate(leadership.stepDown())).toBe(true);
    expect([leadership.isLeader, leadership.term]).toEqual([false, undefined]);
    opening.resolve(new GrantedLock(7).scope);
    await settled();
    expect([leadership.isLeader, leadership.term]).toEqual([true, 7]);
    await leadership.stepDown();
    expect(ended).toMatchObject([{ reason: 'stepped-down' }]);
    await leadership.stop();
    expect(clock.timers).toBe(0);
  });

  it('steps down from within the call that elects it, and that resolves when its lock is released', async () => {
    const lock = new GrantedLock(7);
    const released: boolean[] = [];
    const opening = deferred<Scope>();
    const { leadership } = stage({
      open: () => opening.promise,
      onElected: () => void leadership.stepDown().then(() => released.push(lock.isFinished)),
    });
    opening.resolve(lock.scope);
    await settled();
    expect(released).toEqual([true]);
    await leadership.stop();
  });

  it('says in its signal why it is over', async () => {
    const { leads, ended, leadership } = stage();
    await settled();
    await leadership.stop();
    expect(leads[0]?.signal.reason).toMatchObject({
      name: 'AbortError',
      message: 'The lead of "reports" is over: stopped.',
    });
    expect(ended[0]?.error).toBe(leads[0]?.signal.reason);
  });

  it('whose work goes on is warned of, with the term and the time', async () => {
    const work = deferred();
    const { clock, warnings, leadership } = stage({ onElected: () => work.promise });
    await settled();
    void leadership.stepDown();
    await clock.advance(5_000);
    expect(warnings).toEqual([
      'The work of the leader of "reports" still runs 5 s after term 1 was over. This instance ' +
        'is no candidate before that work ends: have the work end when its signal aborts.',
    ]);
    work.resolve();
    await leadership.stop();
  });
});

describe('work that fails', () => {
  const failure = (name: string): Error => Object.assign(new Error('of the work'), { name });

  it.each<[string, unknown, boolean]>([
    ['an AbortError of its own', failure('AbortError'), false],
    ['another error', failure('TypeError'), true],
    ['what is no error', { name: 'AbortError' }, true],
    ['nothing', undefined, true],
  ])('with %s after the term is over', async (_what, thrown, isLogged) => {
    const { errors, ended, leadership } = stage({
      onElected: async ({ signal }) => {
        await new Promise((resolve) => {
          signal.addEventListener('abort', resolve);
        });
        throw thrown;
      },
    });
    await settled();
    await leadership.stop();
    expect(errors).toEqual(
      isLogged ? [['The work of the leader of "reports" failed in term 1', thrown]] : [],
    );
    expect(ended).toMatchObject([{ reason: 'stopped' }]);
  });

  it('with an AbortError while it leads has failed', async () => {
    const thrown = failure('AbortError');
    const { errors, ended, leadership } = stage({ onElected: () => Promise.reject(thrown) });
    await settled();
    expect(ended).toEqual([{ name: 'reports', term: 1, reason: 'failed', error: thrown }]);
    expect(errors).toHaveLength(1);
    await leadership.stop();
  });

  it('does not keep the candidate from being stopped while it pauses', async () => {
    const { clock, leadership } = stage({ onElected: () => Promise.reject(new Error('no')) });
    await settled();
    expect(clock.timers).toBe(1);
    expect(await isImmediate(leadership.stop())).toBe(true);
    expect(clock.timers).toBe(0);
  });
});

describe('a candidacy', () => {
  it('ends without a word when it is stopped while it waits', async () => {
    const opening = deferred<Scope>();
    const { clock, errors, leadership } = stage({ open: () => opening.promise });
    const stopping = leadership.stop();
    opening.reject(new Error('aborted'));
    await stopping;
    expect([errors, clock.timers]).toEqual([[], 0]);
  });

  it('ends without a word when the service is closed', async () => {
    const closed = new LockServiceClosedError(['reports']);
    const { errors, leadership } = stage({ open: () => Promise.reject(closed) });
    expect(await isImmediate(leadership.stopped)).toBe(true);
    expect(errors).toEqual([]);
  });
});

describe('the candidacies of a service', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;

  it('are forgotten when they have ended', async () => {
    const leaders = new Leaders();
    const stood = async (): Promise<WeakRef<Leadership>> => {
      const { leadership } = stage({}, (candidacy) => leaders.stand(candidacy));
      await settled();
      await leadership.stop();
      return new WeakRef(leadership);
    };
    const [one, other] = [await stood(), await stood()];
    await settled();
    collect();
    expect([one.deref(), other.deref()]).toEqual([undefined, undefined]);
    leaders.close();
  });
});

describe('the rotation', () => {
  it('does not happen where it was not asked for', async () => {
    const { clock, leads, leadership } = stage();
    await settled();
    expect([leads.length, clock.timers]).toEqual([1, 0]);
    await leadership.stop();
  });

  it('lets others go first for a second', async () => {
    const { clock, leads, ended, leadership } = stage({ rotateEveryMs: 10_000 });
    await clock.advance(10_000);
    expect(ended).toMatchObject([{ reason: 'rotated' }]);
    await clock.advance(900);
    expect(leads).toHaveLength(1);
    await clock.advance(100);
    expect(leads).toHaveLength(2);
    await leadership.stop();
  });

  it('does not happen while it is unknown whether others wait', async () => {
    let asked = 0;
    const { clock, ended, leadership } = stage({
      rotateEveryMs: 10_000,
      othersWait: async () => {
        asked += 1;
        if (asked === 1) throw new Error('outage');
        return asked > 2;
      },
    });
    await clock.advance(29_900);
    expect(ended).toEqual([]);
    await clock.advance(100);
    expect(ended).toMatchObject([{ reason: 'rotated' }]);
    await leadership.stop();
  });

  it('is over with the term, also while it asks whether others wait', async () => {
    const { clock, leadership } = stage({ rotateEveryMs: 10_000 });
    await settled();
    expect(clock.timers).toBe(1);
    await leadership.stop();
    expect(clock.timers).toBe(0);

    const answer = deferred<boolean>();
    const other = stage({ rotateEveryMs: 10_000, othersWait: () => answer.promise });
    await other.clock.advance(10_000);
    await other.leadership.stop();
    answer.resolve(false);
    await settled();
    expect(other.clock.timers).toBe(0);
  });
});
