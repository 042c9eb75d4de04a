import { setTimeout as sleep } from 'node:timers/promises';
import type { LockEngine } from '../../../lib/engine/lock-engine.js';
import type { Lead, LeadEnded } from '../../../lib/leader/lead.js';
import type { Leadership } from '../../../lib/leader/leadership.js';
import type { Lock } from '../../../lib/lease/lock.js';
import { type CallNotes, errorName } from './call-notes.js';
import { Holding } from './holding.js';
import type { Random } from './random.js';

/** What every candidate of a run wants. */
export interface LeadPlan {
  readonly name: string;
  readonly ttlMs: number;
  readonly rotateEveryMs: number;
}

/** Candidates wait for as long as it takes. */
const LEAD_WAIT_MS = 600_000;

/** "When this instance is a candidate again", after a term that it ended itself. */
const CANDIDATE_AGAIN_AFTER_MS = 1_000;

const LONGEST_TERM_MS = 3_000;

/** After its signal has aborted, work takes up to so long. */
const LATE_MS = 30;

class PlannedFailure extends Error {}

/** A candidate for a leadership. It records what happens to it: each of its terms is a call of its own. */
export class Candidate {
  readonly #notes: CallNotes;
  readonly #plan: LeadPlan;
  readonly #random: Random;
  readonly #locks: LockEngine;
  readonly #leadership: Leadership;
  /** Who it is among those of its process. */
  readonly #candidate: number;
  /** The calls of its terms. */
  readonly #asks = new Map<number, number>();
  /** The call that has no answer yet. */
  #waiting: number | undefined;
  #again: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(
    notes: CallNotes,
    locks: LockEngine,
    { plan, random }: { readonly plan: LeadPlan; readonly random: Random },
  ) {
    this.#notes = notes;
    this.#plan = plan;
    this.#random = random;
    this.#locks = locks;
    this.#candidate = notes.nextAsk();
    const { name, ttlMs: ttl, rotateEveryMs: rotateEvery } = plan;
    this.#stand();
    this.#leadership = locks.lead(name, {
      ...{ ttl, rotateEvery },
      onElected: (lead) => this.#lead(lead),
      onLost: (ended) => this.#told(ended),
    });
  }

  async stop(): Promise<void> {
    await this.#leadership.stop();
  }

  /** Its candidacy has ended, by itself or with its service. */
  ended(): void {
    this.#isOver = true;
    clearTimeout(this.#again);
    const ask = this.#waiting;
    if (ask !== undefined) this.#notes.record({ type: 'failed', ask, error: 'AbortError' });
  }

  #stand(): number {
    clearTimeout(this.#again);
    if (this.#waiting !== undefined) return this.#waiting;
    const ask = this.#notes.nextAsk();
    this.#waiting = ask;
    this.#notes.record({
      ...{ type: 'ask', ask, how: 'lead', keys: [this.#plan.name], waitMs: LEAD_WAIT_MS },
      candidate: this.#candidate,
    });
    return ask;
  }

  async #lead(lead: Lead): Promise<void> {
    const { name } = this.#plan;
    const ask = this.#stand();
    this.#asks.set(lead.term, ask);
    let result = 'true';
    try {
      await this.#locks.run(name, {}, (lock) => this.#work(ask, lead, lock));
    } catch (error) {
      result = errorName(error);
      if (error instanceof PlannedFailure) throw error;
      if (this.#waiting === ask) this.#notes.failed(ask, error);
    } finally {
      this.#waiting = undefined;
      this.#notes.record({ type: 'released', ask, result });
      this.#standAgain(lead);
    }
  }

  /** Under the lock of the leader: a nested call reuses it. */
  async #work(ask: number, lead: Lead, lock: Lock): Promise<void> {
    const random = this.#random;
    const leadership = this.#leadership;
    const believes = (): boolean => (lead.signal.aborted ? lock.isHeld : leadership.isLeader);
    const holding = new Holding(this.#notes, { ask, mode: 'exclusive', lock, believes });
    this.#waiting = undefined;
    const end = random.pick(['stays', 'stays', 'steps down', 'is stepped down', 'fails'] as const);
    await holding.last(
      end === 'stays' ? Infinity : random.between(0, LONGEST_TERM_MS),
      lead.signal,
    );
    if (!lead.signal.aborted && lock.isHeld) {
      if (end === 'steps down') lead.stepDown();
      if (end === 'is stepped down') void leadership.stepDown();
      if (end === 'fails') {
        holding.end();
        throw new PlannedFailure('planned');
      }
    }
    // The lead is kept until its work has ended.
    await sleep(random.between(0, LATE_MS));
    holding.look();
    holding.end();
  }

  #told({ term, reason, error }: LeadEnded): void {
    const ask = this.#asks.get(term);
    if (ask === undefined) return; // over before its work began
    this.#notes.record({ type: 'term-over', ask, term, reason, after: errorName(error) });
    this.#isOver ||= reason === 'stopped';
  }

  /** As docs/cron.md says. After work that failed it may take longer. */
  #standAgain({ signal }: Lead): void {
    if (this.#isOver || !signal.aborted) return;
    if (errorName(signal.reason) === 'LockLostError') this.#stand();
    else this.#again = setTimeout(() => this.#stand(), CANDIDATE_AGAIN_AFTER_MS);
  }
}
