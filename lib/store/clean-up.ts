import type { LeaseRequest, LinePlace, ReleaseOutcome } from './lock-store.js';
import type { Scheduler, Task } from '../time/scheduler.js';
import { backOffMs, type BackOff } from '../time/back-off.js';
import { PendingTasks } from '../time/pending-tasks.js';
import { isRefused } from './unavailable.js';

/** Between two rounds while the store does not reply. */
const RETRY: BackOff = { firstMs: 50, longestMs: 5_000 };
/**
 * When to ask again after each reply "not held", because the request may still be carried out. After the last time it
 * counts as never carried out.
 */
const ASK_AGAIN_MS: readonly number[] = [500, 5_000];
/** Requests of a round that are on their way at once. */
const AT_ONCE = 10;
/**
 * The same in the last round: no other request asks the store any more. A lease that is not released in time stays
 * taken for its TTL.
 */
const AT_ONCE_AT_LAST = 1_000;
/** From this number of pending entries on, a new one has to wait for its round. */
const CROWD = 1_000;

/** What may be left in the store: a lease, and with it the place of a caller who has left the line. */
export interface LeftOver extends LeaseRequest {
  readonly leaves?: LinePlace | undefined;
  /** The last fencing token that was used under it, if it is known. */
  readonly lastToken?: number | undefined;
}

interface Dependencies {
  readonly store: {
    release(lease: LeftOver, lastToken?: number, keepMs?: number): Promise<ReleaseOutcome>;
  };
  readonly scheduler: Scheduler;
  /** Called with the keys of what was removed. */
  readonly onRemoved: (keys: readonly string[]) => void;
}

interface Entry {
  /** The `ttlMs`: at most how long, from `sinceMs`, the store may keep it. */
  readonly lease: LeftOver;
  /**
   * By the monotonic clock: a wall clock that is set forward must not end it. After a machine was suspended, it asks for longer than is
   * needed, which removes nothing but its own token.
   */
  readonly sinceMs: number;
  /** For how many ms, from `sinceMs`, the keys are to stay taken. */
  readonly keepMs: number;
  /** When it may be asked for again, in ms from `sinceMs`. */
  dueMs: number;
  notHeld: number;
  asking: boolean;
}

/**
 * Cleans up, in rounds, what requests without a reply may have left in the store. It uses one timer and sends a few
 * requests at a time. When one has found the store unavailable, it sends no more of them in that round, unless that is the last one.
 */
export class CleanUp {
  readonly #deps: Dependencies;
  readonly #entries = new Map<string, Entry>();
  readonly #asking = new PendingTasks();
  #state: 'open' | 'finishing' | 'closed' = 'open';
  /** Rounds without a reply of the store, since its last reply. */
  #failures = 0;
  #next: { readonly at: number; readonly task: Task } | undefined;
  #working = false;

  constructor(dependencies: Dependencies) {
    this.#deps = dependencies;
  }

  get size(): number {
    return this.#entries.size;
  }

  /**
   * The first request goes out at once, ahead of the next attempt on the same connection; in a crowd with the next round.
   *
   * @param keepMs for so long from now the keys are not removed, but stay taken
   */
  add(lease: LeftOver, keepMs = 0): void {
    if (this.#state === 'closed') return;
    const crowded = this.#entries.size >= CROWD;
    // A second request to remove a token does not make it forget the line.
    const leaves = lease.leaves ?? this.#entries.get(lease.token)?.lease.leaves;
    const entry = {
      lease: { ...lease, leaves },
      sinceMs: this.#nowMs,
      keepMs,
      dueMs: 0,
      notHeld: 0,
      asking: false,
    };
    this.#entries.set(lease.token, entry);
    if (crowded) this.#plan(this.#delayMs);
    else void this.#ask(entry);
  }

  /** One last round, and none after it; one that is under way ends early. */
  async finish(): Promise<void> {
    this.#state = 'finishing';
    this.#cancel();
    await this.#asking.settled();
    await this.#workOff([...this.#entries.values()], AT_ONCE_AT_LAST);
  }

  /** Forgets everything. */
  close(): void {
    this.#state = 'closed';
    this.#cancel();
    this.#entries.clear();
  }

  /** Never rejects. */
  async #ask(entry: Entry): Promise<ReleaseOutcome> {
    const { lease } = entry;
    entry.asking = true;
    const outcome = await this.#asking.add(
      this.#deps.store.release(lease, lease.lastToken, this.#keepMsOf(entry)),
    );
    entry.asking = false;
    if (outcome.status === 'released') this.#deps.onRemoved(lease.keys);
    if (outcome.status !== 'unavailable') this.#hasAnswered();
    // A newer request for this token has replaced the entry.
    if (!this.#isLatest(entry)) return outcome;
    const againMs = this.#askAgainMs(entry, outcome);
    entry.dueMs = this.#ageOf(entry) + againMs;
    if (entry.dueMs < lease.ttlMs) this.#plan(againMs);
    else this.#entries.delete(lease.token);
    return outcome;
  }

  #isLatest(entry: Entry): boolean {
    return this.#entries.get(entry.lease.token) === entry;
  }

  #askAgainMs(entry: Entry, outcome: ReleaseOutcome): number {
    if (outcome.status === 'released') return Infinity;
    if (outcome.status === 'unavailable')
      return isRefused(outcome) ? RETRY.longestMs : this.#delayMs;
    return ASK_AGAIN_MS[entry.notHeld++] ?? Infinity;
  }

  #hasAnswered(): void {
    if (this.#failures === 0) return;
    this.#failures = 0;
    for (const entry of this.#entries.values()) if (entry.notHeld === 0) entry.dueMs = 0;
    this.#plan(RETRY.firstMs);
  }

  /** A round in `delayMs`, unless there is one before. */
  #plan(delayMs: number): void {
    if (this.#state !== 'open' || this.#working) return;
    const at = this.#nowMs + delayMs;
    if (this.#next !== undefined && this.#next.at <= at) return;
    this.#cancel();
    const task = this.#deps.scheduler.schedule(delayMs, () => {
      this.#next = undefined;
      void this.#round();
    });
    this.#next = { at, task };
  }

  async #round(): Promise<void> {
    this.#working = true;
    const due: Entry[] = [];
    for (const [token, entry] of this.#entries) {
      const age = this.#ageOf(entry);
      if (age >= entry.lease.ttlMs) this.#entries.delete(token);
      // The scheduler comes up to a slot early.
      else if (!entry.asking && entry.dueMs - age <= RETRY.firstMs) due.push(entry);
    }
    const complete = await this.#workOff(due, AT_ONCE);
    this.#working = false;
    if (!complete) {
      this.#failures += 1;
      if (this.#entries.size > 0) this.#plan(this.#delayMs);
      return;
    }
    let nextMs = Infinity;
    for (const entry of this.#entries.values()) {
      if (!entry.asking) nextMs = Math.min(nextMs, entry.dueMs - this.#ageOf(entry));
    }
    if (nextMs < Infinity) this.#plan(Math.max(nextMs, RETRY.firstMs));
  }

  /** Resolves with whether the store replied for all of them. Unless it is the last time, it stops at the first one without a reply. */
  async #workOff(entries: readonly Entry[], atOnce: number): Promise<boolean> {
    const queue = entries.values();
    const state = this.#state;
    let complete = true;
    const work = async (): Promise<void> => {
      for (const entry of queue) {
        const outcome = await this.#ask(entry);
        if (outcome.status === 'unavailable' && !isRefused(outcome)) {
          complete = false;
          // To the end: one that always fails must not keep the others from their turn.
          if (this.#isLatest(entry)) {
            this.#entries.delete(entry.lease.token);
            this.#entries.set(entry.lease.token, entry);
          }
        }
        if (this.#state !== state || (!complete && state === 'open')) return;
      }
    };
    await Promise.all(Array.from({ length: Math.min(atOnce, entries.length) }, work));
    return complete;
  }

  get #delayMs(): number {
    return backOffMs(RETRY, this.#failures);
  }

  #cancel(): void {
    this.#next?.task.cancel();
    this.#next = undefined;
  }

  #keepMsOf(entry: Entry): number {
    return Math.max(0, Math.ceil(entry.keepMs - this.#ageOf(entry)));
  }

  #ageOf({ sinceMs }: Entry): number {
    return this.#nowMs - sinceMs;
  }

  get #nowMs(): number {
    return this.#deps.scheduler.runtime.now().monotonicMs;
  }
}
