import type { HoldEnd } from '../observe/recorder.js';
import type { Clock, Instant } from '../time/clock.js';
import type { Lease } from './lease.js';
import { callFacts, type CallFacts } from './lock-request.js';

/** Locks that were held for less are not remembered, unless they were lost: those are granted by the thousand. */
const WORTH_MS = 1_000;

const MOST_PAST = 500;

/** A lock that this process held. */
export interface PastHold extends HoldEnd {
  readonly keys: readonly string[];
  readonly facts: CallFacts;
  readonly fencingToken: number;
  readonly endedAt: Instant;
}

/** The locks that a process held last, for operators. */
export class PastHolds {
  readonly #clock: Clock;
  readonly #holds: PastHold[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(lease: Lease, end: HoldEnd): void {
    if (end.heldMs < WORTH_MS && end.outcome !== 'lost') return;
    const { keys, request, fencingToken } = lease;
    // Not the request itself: it may keep what a caller has long let go.
    const endedAt = this.#clock.now();
    this.#holds.push({ ...end, keys, facts: callFacts(request), fencingToken, endedAt });
    if (this.#holds.length > MOST_PAST) this.#holds.shift();
  }

  /** The newest first. */
  of(key: string): readonly PastHold[] {
    return this.#holds.filter(({ keys }) => keys.includes(key)).reverse();
  }
}
