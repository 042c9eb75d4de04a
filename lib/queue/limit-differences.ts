import { inPlaces } from '../observe/contexts.js';
import type { LockEventHub } from '../observe/lock-events.js';
import { limitIn } from '../store/owner-token.js';
import type { LockRequest } from './caller.js';

/** The reported differences of at most this many keys are kept. */
const MOST_KEYS = 1_000;

/** Reports that callers give different limits for one key, once for each difference. */
export class LimitDifferences {
  readonly #events: LockEventHub;
  readonly #told = new Map<string, Set<string>>();

  constructor(events: LockEventHub) {
    this.#events = events;
  }

  /** What the store has found when it was asked. */
  found({ keys, mode, places, origin }: LockRequest, otherLimit: number | undefined): void {
    if (otherLimit === undefined) return;
    const limit = limitIn(mode);
    if (limit === undefined) return;
    const key = keys.join('\0');
    const told = this.#told.get(key) ?? new Set();
    const difference = `${String(limit)} ${String(otherLimit)}`;
    if (told.has(difference)) return;
    if (this.#told.size >= MOST_KEYS) this.#told.clear();
    this.#told.set(key, told.add(difference));
    const subject = { keys, mode, ...inPlaces({ places }), ...origin };
    this.#events.emit('limitsDiffer', { ...subject, limit, otherLimit });
  }
}
