import type { LockEngine } from '../../../../lib/engine/lock-engine.js';
import type { LockLostError } from '../../../../lib/errors.js';
import type { Lead, LeadEnd, LeadEnded } from '../../../../lib/leader/lead.js';
import type { Leadership } from '../../../../lib/leader/leadership.js';
import type { Lock } from '../../../../lib/lease/lock.js';
import type { History } from '../history.js';
import type { LeadPlan, Operation, TermPlan } from '../scenario.js';
import type { SimProcess } from '../world/sim-process.js';
import { errorName, PlannedFailure, recordFailure } from './failures.js';
import type { Held, Holding, Holdings } from './holdings.js';
import { sleep } from './sleep.js';

interface Dependencies {
  readonly engine: LockEngine;
  readonly process: SimProcess;
  readonly history: History;
  readonly holdings: Holdings;
  /** The number of the next call. */
  readonly nextAsk: () => number;
  /** Aborts when the process shuts down. */
  readonly stopping: AbortSignal;
}

/** Runs the candidates for the leadership of a name, and records what happens to them. */
export class Leading {
  readonly #deps: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#deps = dependencies;
  }

  /** Never rejects. Resolves when it is no candidate any more. */
  stand(operation: Operation, plan: LeadPlan): Promise<void> {
    return new Candidate(this.#deps, operation, plan).stand();
  }
}

/** A term that has begun. */
interface Term {
  readonly ask: number;
  readonly plan: TermPlan;
  readonly holding: Holding;
}

/** "When this instance is a candidate again": "after 1 s", if it has stepped down or rotated. */
const ASIDE_MS = 1_000;

/** "After 1 s, 2 s, … up to 60 s", if its work has failed. */
const afterFailureMs = (failures: number): number => Math.min(1_000 * 2 ** (failures - 1), 60_000);

/**
 * One candidate. Each of its candidacies is a call of its own: it asks at the time that docs/cron.md names, waits until it is elected, and
 * is the leader until its work has ended.
 */
class Candidate {
  readonly #deps: Dependencies;
  readonly #operation: Operation;
  readonly #plan: LeadPlan;
  readonly #client: string;
  #leadership!: Leadership;
  #first: number | undefined;
  /** The number of the call that waits. */
  #waiting: number | undefined;
  #term: Term | undefined;
  #terms = 0;
  #failures = 0;
  #isOver = false;
  #cancel = (): void => undefined;
  /** Resolves when the lead of its last term is free. */
  #freed: Promise<void> | undefined;

  constructor(dependencies: Dependencies, operation: Operation, plan: LeadPlan) {
    this.#deps = dependencies;
    this.#operation = operation;
    this.#plan = plan;
    this.#client = dependencies.process.name;
  }

  async stand(): Promise<void> {
    const { engine, process, history, stopping } = this.#deps;
    const { keys, ttlMs, holdMs } = this.#operation;
    const { rotateEveryMs } = this.#plan;
    const client = this.#client;
    const first = this.#ask();
    try {
      this.#leadership = engine.lead(keys[0]!, {
        ttl: ttlMs,
        ...(rotateEveryMs !== undefined && { rotateEvery: rotateEveryMs }),
        onElected: (lead) => this.#elected(lead),
        onLost: (ended) => this.#ended(ended),
      });
    } catch (error) {
      recordFailure(history, { client, ask: first }, error);
      return;
    }
    await sleep(process.applicationRuntime, holdMs, stopping);
    this.#isOver = true;
    this.#cancel();
    // The shutdown stops it.
    if (stopping.aborted) {
      this.#givesUp('LockServiceClosedError');
      await this.#freed;
      return;
    }
    history.record({ type: 'stops', client, candidate: first });
    await this.#leadership.stop();
    this.#givesUp('AbortError');
  }

  #givesUp(error: string): void {
    const ask = this.#waiting;
    this.#waiting = undefined;
    if (ask !== undefined)
      this.#deps.history.record({ type: 'failed', client: this.#client, ask, error });
  }

  /** It is a candidate from now on. */
  #ask(): number {
    const { history, nextAsk } = this.#deps;
    const { how, keys, mode, waitMs, ttlMs } = this.#operation;
    const { rotateEveryMs } = this.#plan;
    const client = this.#client;
    const ask = nextAsk();
    this.#waiting = ask;
    this.#first ??= ask;
    history.record({ type: 'ask', client, ask, how, keys, mode, waitMs });
    history.record({
      ...{ type: 'stands', client, lead: ask, candidate: this.#first, ttlMs },
      ...(rotateEveryMs !== undefined && { rotateEveryMs }),
    });
    return ask;
  }

  async #elected(lead: Lead): Promise<void> {
    const { engine, process, history, holdings } = this.#deps;
    const { keys, mode } = this.#operation;
    const client = this.#client;
    const lock = engine.current()!;
    this.#cancel();
    // It may be elected sooner than it is said to stand again.
    const ask = this.#waiting ?? this.#ask();
    this.#waiting = undefined;
    const { terms } = this.#plan;
    const plan = terms[this.#terms % terms.length]!;
    this.#terms += 1;
    const held = this.#heldBy(lead, lock);
    const holding: Holding = { process, ask, mode, places: undefined, lock: held, listens: true };
    const { term: fencingToken } = lead;
    const aheadMs = holdings.aheadMs(fencingToken);
    history.record({ type: 'granted', client, ask, keys, fencingToken, aheadMs });
    holdings.add(holding);
    this.#term = { ask, plan, holding };
    lock.signal.addEventListener('abort', () => {
      const { reason } = lock.signal.reason as LockLostError;
      history.record({ type: 'lost', client, ask, reason });
    });
    const ending = this.#endsItself(lead, plan, ask);
    if (plan.work === 'returns') return;
    try {
      await Promise.race([untilAborted(lead.signal), ending]);
      await this.#cleanUp(plan);
    } finally {
      this.#leave(holding);
    }
    if (plan.work === 'rejects') throw lead.signal.reason;
  }

  /** What it believes: that it leads, by any of the ways to ask; then that it keeps the lead until its work has ended. */
  #heldBy(lead: Lead, lock: Lock): Held {
    const leads = (): boolean => this.#leadership.term === lead.term || mayGoOn(lead);
    return {
      keys: lock.keys,
      signal: lead.signal,
      get isHeld() {
        // The signal compares the clocks when it is read, so it is read last.
        return leads() || (lead.signal.aborted && lock.isHeld);
      },
      get remainingMs() {
        return lock.remainingMs;
      },
    };
  }

  /** Rejects when the work is to fail, and never resolves otherwise. */
  async #endsItself(lead: Lead, { end }: TermPlan, ask: number): Promise<never> {
    const { process, history } = this.#deps;
    const never = new Promise<never>(() => undefined);
    if (end === undefined) return never;
    await sleep(process.applicationRuntime, end.afterMs, lead.signal);
    if (lead.signal.aborted) return never;
    const { how } = end;
    const reason = how === 'fails' ? 'failed' : 'stepped-down';
    history.record({ type: 'ends-term', client: this.#client, lead: ask, how: reason });
    if (how === 'fails') throw new PlannedFailure('planned');
    if (how === 'lead.stepDown') lead.stepDown();
    else void this.#leadership.stepDown();
    return never;
  }

  async #ended({ reason, error }: LeadEnded): Promise<void> {
    const term = this.#term;
    if (term === undefined) throw new Error('a term is over that has not begun');
    const { ask, plan, holding } = term;
    const { isLeader: leads } = this.#leadership;
    this.#deps.history.record({
      ...{ type: 'term-closed', client: this.#client, lead: ask, reason, leads },
      error: errorName(error),
    });
    // Of a term that is over already, this only tells when the lead is free.
    this.#freed = this.#leadership.stepDown().then(() => {
      this.#released(ask, reason);
    });
    if (plan.work !== 'returns') return;
    await this.#cleanUp(plan);
    this.#leave(holding);
  }

  async #cleanUp({ lingersMs }: TermPlan): Promise<void> {
    if (lingersMs > 0) await sleep(this.#deps.process.applicationRuntime, lingersMs);
  }

  #leave(holding: Holding): void {
    const { history, holdings } = this.#deps;
    holdings.look(holding);
    holdings.remove(holding);
    history.record({ type: 'releasing', client: this.#client, ask: holding.ask });
  }

  /** The lead is free. */
  #released(ask: number, reason: LeadEnd): void {
    const { history, process, stopping } = this.#deps;
    history.record({ type: 'released', client: this.#client, ask, result: reason });
    this.#term = undefined;
    if (this.#isOver || stopping.aborted || reason === 'stopped') return;
    this.#failures = reason === 'failed' ? this.#failures + 1 : 0;
    if (reason === 'lost') this.#ask();
    else {
      const asideMs = reason === 'failed' ? afterFailureMs(this.#failures) : ASIDE_MS;
      this.#cancel = process.applicationRuntime.setTimer(() => this.#ask(), asideMs);
    }
  }
}

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => {
      resolve();
    });
  });

function mayGoOn(lead: Lead): boolean {
  try {
    lead.assertLeading();
    return true;
  } catch {
    return false;
  }
}
