import { LockServiceClosedError } from '../errors.js';
import type { Log } from '../observe/log.js';
import { onAbort, pause } from '../queue/on-abort.js';
import type { Scope } from '../sections/scope.js';
import { backOffMs, type BackOff } from '../time/back-off.js';
import type { Scheduler, Task } from '../time/scheduler.js';
import type { Lead, LeadEnd, LeadEnded } from './lead.js';

/** The back-off after a term whose work failed. Other instances may be elected meanwhile. */
const AFTER_FAILURE: BackOff = { firstMs: 1_000, longestMs: 60_000 };

/**
 * The back-off while the lock cannot be asked for: the store refuses it, for instance because a right is missing. A
 * waiting caller tries again at least this often too.
 */
const AFTER_REFUSAL: BackOff = { firstMs: 1_000, longestMs: 5_000 };

/**
 * How long a leader that stepped down for others waits before it is a candidate again. Over several masters no line puts it
 * behind them.
 */
const STAND_ASIDE_MS = 1_000;

/** Work that continues for this long after its lead is over causes a warning. */
const LATE_MS = 5_000;

/** What an instance needs to be a candidate. */
export interface Candidacy {
  readonly name: string;
  readonly rotateEveryMs: number | undefined;
  readonly onElected: (lead: Lead) => unknown;
  readonly onLost: ((ended: LeadEnded) => unknown) | undefined;
  readonly log: Log;
  readonly scheduler: Scheduler;
  /** Waits until the lock of the leader is held. */
  readonly open: (signal: AbortSignal) => Promise<Scope>;
  /** Whether others wait to be elected. */
  readonly othersWait: () => Promise<boolean>;
}

/** A term that has begun. */
interface Term {
  readonly number: number;
  readonly isHeld: () => boolean;
  readonly end: (reason: LeadEnd, error?: unknown) => void;
  /** Resolves when its work has ended and its lock is released. */
  readonly over: Promise<void>;
}

/**
 * This instance as a candidate. It is a candidate until it is stopped, also after each of its terms.
 * `locks.lead(…)` makes it, and the shutdown stops it.
 */
export class Leadership implements AsyncDisposable {
  /** The name that instances compete for. */
  readonly name: string;
  readonly #candidacy: Candidacy;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  #term: Term | undefined;

  /** @internal */
  constructor(candidacy: Candidacy) {
    this.name = candidacy.name;
    this.#candidacy = candidacy;
    this.#running = this.#run();
  }

  /**
   * Whether this instance currently leads. It compares the clocks, so it is right even after the event loop was
   * blocked.
   */
  get isLeader(): boolean {
    return this.#term?.isHeld() === true;
  }

  /** The number of the current term, while this instance leads. */
  get term(): number | undefined {
    return this.isLeader ? this.#term?.number : undefined;
  }

  /**
   * Lets another instance lead; this one is a candidate again a second later. Resolves when the work has ended and the
   * leadership is released; after the end of a term, it only waits for that. In `onElected`, call `lead.stepDown()`
   * instead: work that awaits this waits for itself.
   */
  async stepDown(): Promise<void> {
    const term = this.#term;
    term?.end('stepped-down');
    await term?.over;
  }

  /** Releases the leadership, and stops being a candidate. Resolves when the work has ended. */
  async stop(): Promise<void> {
    this.close();
    await this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** @internal Resolves when the candidacy has ended. */
  get stopped(): Promise<void> {
    return this.#running;
  }

  /** @internal Begins to stop. */
  close(): void {
    this.#stopping.abort();
    this.#term?.end('stopped');
  }

  #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    const { open, log } = this.#candidacy;
    let [failures, refusals] = [0, 0];
    while (!this.#isStopped()) {
      let scope: Scope;
      try {
        scope = await open(signal);
      } catch (error) {
        if (this.#isStopped() || error instanceof LockServiceClosedError) return;
        if (refusals === 0)
          log.error(
            `This instance could not be a candidate for the leadership "${this.name}"`,
            error,
          );
        await this.#pause(backOffMs(AFTER_REFUSAL, refusals++));
        continue;
      }
      refusals = 0;
      const end = await this.#lead(scope);
      if (end === 'failed') await this.#pause(backOffMs(AFTER_FAILURE, failures++));
      else {
        failures = 0;
        if (end === 'stepped-down' || end === 'rotated') await this.#pause(STAND_ASIDE_MS);
      }
    }
  }

  /** One term, from the election until its lock is released. Returns what ended it, also where its lock was over by then. */
  async #lead(scope: Scope): Promise<LeadEnd> {
    const { lock } = scope;
    const { name } = this;
    const controller = new AbortController();
    let ended!: (end: LeadEnded) => void;
    const end = new Promise<LeadEnded>((resolve) => (ended = resolve));
    let leave!: () => void;
    const over = new Promise<void>((resolve) => (leave = resolve));
    const term = lock.fencingToken;
    let first: LeadEnd | undefined;
    /** The first reason counts. Whatever ends the term, a lock that is over by now was lost: the signal compares the clocks. */
    const finish = (given: LeadEnd, cause: unknown = abortError(name, given)): void => {
      // To read the signal may itself end the term, as lost.
      first ??= given;
      const isLost = lock.signal.aborted;
      const reason = isLost ? 'lost' : given;
      const error: unknown = isLost ? lock.signal.reason : cause;
      controller.abort(error);
      ended({ name, term, reason, error });
    };
    const { signal } = controller;
    this.#term = {
      number: term,
      isHeld: () => !signal.aborted && lock.isHeld,
      end: finish,
      over,
    };
    const forget = onAbort(lock.signal, () => {
      finish('lost');
    });
    const lead: Lead = {
      name,
      term,
      get signal() {
        if (lock.signal.aborted) finish('lost');
        return signal;
      },
      assertLeading: () => {
        signal.throwIfAborted();
        lock.assertHeld();
      },
      stepDown: () => {
        finish('stepped-down');
      },
    };
    // Lost or stopped before the work began.
    if (lock.signal.aborted) finish('lost');
    else if (this.#isStopped()) finish('stopped');
    const hasBegun = !signal.aborted;
    const work = hasBegun ? this.#work(scope, lead, finish) : Promise.resolve();
    const stopRotation = this.#rotate(finish);
    const ending = await end;
    stopRotation();
    forget();
    await Promise.all([hasBegun ? this.#tellLost(ending) : undefined, this.#settled(work, term)]);
    // A release that failed was logged by the keeper, and a loss is what ended the term.
    await scope.finish().catch(() => undefined);
    this.#term = undefined;
    leave();
    return first ?? ending.reason;
  }

  /** Never rejects. */
  async #work(
    scope: Scope,
    lead: Lead,
    finish: (reason: LeadEnd, error: unknown) => void,
  ): Promise<void> {
    const { onElected, log } = this.#candidacy;
    try {
      await scope.section.inside(() => onElected(lead));
    } catch (error) {
      const { signal } = lead;
      // Work that is asked to end does so by failing with the reason of its signal.
      if (signal.aborted && (error === signal.reason || isAbortError(error))) return;
      log.error(
        `The work of the leader of "${this.name}" failed in term ${String(lead.term)}`,
        error,
      );
      finish('failed', error);
    }
  }

  /** Never rejects. */
  async #tellLost(ended: LeadEnded): Promise<void> {
    const { onLost, log } = this.#candidacy;
    try {
      await onLost?.(ended);
    } catch (error) {
      log.error(`onLost of the leader of "${this.name}" failed`, error);
    }
  }

  async #settled(work: Promise<void>, term: number): Promise<void> {
    const { scheduler, log } = this.#candidacy;
    const late = scheduler.schedule(LATE_MS, () => {
      log.warn(
        `The work of the leader of "${this.name}" still runs ${String(LATE_MS / 1_000)} s after term ${String(term)} was over. This instance ` +
          'is no candidate before that work ends: have the work end when its signal aborts.',
      );
    });
    await work;
    late.cancel();
  }

  /** Steps down each time that its time is over and others wait. Returns a function that ends the rotation. */
  #rotate(finish: (reason: LeadEnd) => void): () => void {
    const { rotateEveryMs, othersWait, scheduler } = this.#candidacy;
    if (rotateEveryMs === undefined) return () => undefined;
    let isOver = false;
    const look = async (): Promise<void> => {
      const isWanted = await othersWait().catch(() => false);
      if (isOver) return;
      if (isWanted) finish('rotated');
      else next();
    };
    let task: Task;
    const next = (): void => {
      task = scheduler.schedule(rotateEveryMs, () => void look());
    };
    next();
    return () => {
      isOver = true;
      task.cancel();
    };
  }

  /** Ends early when it is stopped. */
  #pause(ms: number): Promise<void> {
    return pause(this.#candidacy.scheduler, ms, this.#stopping.signal);
  }
}

/** The candidacies of a service. */
export class Leaders {
  readonly #all = new Set<Leadership>();
  #isClosed = false;

  /** @throws LockServiceClosedError during and after the shutdown */
  stand(candidacy: Candidacy): Leadership {
    if (this.#isClosed) throw new LockServiceClosedError([candidacy.name]);
    const leadership = new Leadership(candidacy);
    this.#all.add(leadership);
    void leadership.stopped.then(() => this.#all.delete(leadership));
    return leadership;
  }

  /**
   * Makes all of them step down, and accepts no candidates any more. Their locks are released when their work has
   * ended.
   */
  close(): void {
    this.#isClosed = true;
    for (const each of this.#all) each.close();
  }
}

/** As platforms name the reason of a signal that was aborted on purpose. */
const abortError = (name: string, reason: LeadEnd): DOMException =>
  new DOMException(`The lead of "${name}" is over: ${reason}.`, 'AbortError');

const isAbortError = (error: unknown): boolean =>
  error instanceof Error && error.name === 'AbortError';
