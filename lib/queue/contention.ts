import type { Clock, Instant } from '../time/clock.js';

/** For how many minutes counts are kept. */
const MINUTES = 5;

/** The counts of at most this many keys a minute are kept. */
const MOST_KEYS = 1_000;

const MINUTE_MS = 60_000;

/** How often a key was waited for and refused. */
export interface Contended {
  readonly key: string;
  /** How long all callers together waited, in ms; of those that wait now, so far. */
  readonly waitedMs: number;
  /** How many waits are over. */
  readonly waits: number;
  readonly refusals: number;
  /** How many callers wait now; missing if none does. */
  readonly waiting?: number | undefined;
  /** How long the first of them has waited, in ms. */
  readonly longestMs?: number | undefined;
}

/** A caller that waits now. */
export interface Waiting {
  readonly request: { readonly keys: readonly string[] };
  readonly waitedMs: number;
}

type Counts = { -readonly [Name in keyof Contended]: Contended[Name] };

/** A process reports at most this many keys that callers wait for now, those with the longest waits. */
const MOST_WAITED_FOR = 50;

/**
 * Which keys callers of this process waited for in the last minutes, and were refused. Locks that are granted at once are not counted.
 */
export class Contention {
  readonly #clock: Clock;
  /** By minute, the newest last. */
  readonly #minutes: { readonly minute: number; readonly byKey: Map<string, Counts> }[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  waited(keys: readonly string[], ms: number, now: Instant): void {
    for (const counts of this.#countsOf(keys, now)) {
      counts.waits += 1;
      counts.waitedMs += ms;
    }
  }

  refused(keys: readonly string[]): void {
    for (const counts of this.#countsOf(keys, this.#clock.now())) counts.refusals += 1;
  }

  /**
   * The keys that were waited for longest, and then those that were refused most; beside them, those with the longest
   * waits that last.
   */
  hottest(count: number, waiting: readonly Waiting[]): readonly Contended[] {
    const since = minuteOf(this.#clock.now()) - MINUTES;
    const recent = this.#minutes.filter(({ minute }) => minute > since);
    const all = summed([
      ...recent.flatMap(({ byKey }) => [...byKey.values()]),
      ...waiting.flatMap(({ request: { keys }, waitedMs }) =>
        keys.map((key) => ({
          key,
          waitedMs,
          waits: 0,
          refusals: 0,
          waiting: 1,
          longestMs: waitedMs,
        })),
      ),
    ]);
    return [...new Set([...hottest(all, count), ...longestWaitedFor(all, MOST_WAITED_FOR)])];
  }

  #countsOf(keys: readonly string[], now: Instant): readonly Counts[] {
    const minute = minuteOf(now);
    let newest = this.#minutes.at(-1);
    if (newest?.minute !== minute) {
      newest = { minute, byKey: new Map() };
      this.#minutes.push(newest);
      if (this.#minutes.length > MINUTES) this.#minutes.shift();
    }
    const { byKey } = newest;
    return keys.flatMap((key) => {
      const known = byKey.get(key);
      if (known !== undefined) return known;
      if (byKey.size >= MOST_KEYS) return [];
      const counts = { key, waitedMs: 0, waits: 0, refusals: 0 };
      byKey.set(key, counts);
      return counts;
    });
  }
}

const minuteOf = (now: Instant): number => Math.floor(now.monotonicMs / MINUTE_MS);

/** Counts of one key from several minutes, or processes, together. */
export function summed(all: Iterable<Contended>): readonly Contended[] {
  const byKey = new Map<string, Counts>();
  for (const each of all) {
    const sum = byKey.get(each.key);
    if (sum === undefined) byKey.set(each.key, { ...each });
    else {
      sum.waitedMs += each.waitedMs;
      sum.waits += each.waits;
      sum.refusals += each.refusals;
      if (each.waiting === undefined) continue;
      sum.waiting = (sum.waiting ?? 0) + each.waiting;
      sum.longestMs = Math.max(sum.longestMs ?? 0, each.longestMs ?? 0);
    }
  }
  return [...byKey.values()];
}

export const hottest = (all: readonly Contended[], count: number): readonly Contended[] =>
  all.toSorted((a, b) => b.waitedMs - a.waitedMs || b.refusals - a.refusals).slice(0, count);

/** The keys that callers wait for now; the longest wait first. */
export const longestWaitedFor = (all: readonly Contended[], count: number): readonly Contended[] =>
  all
    .filter(({ waiting = 0 }) => waiting > 0)
    .sort((a, b) => (b.longestMs ?? 0) - (a.longestMs ?? 0))
    .slice(0, count);
