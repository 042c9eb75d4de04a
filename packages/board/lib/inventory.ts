import type { LockAdmin, LockSummary } from 'nestjs-holdfast/admin';
import type { Clock } from './clock.js';

/** More keys than these are not read. The keys that callers wait for are found among any number. */
export const MOST_KEYS = 25_000;

/** A search that takes longer is not waited for: what is shown is the one before. */
const PATIENCE_MS = 300;

const EVERY_MS = 1_000;

/** Where a search takes long, because a server has millions of keys, the pause after it is longer by this factor. */
const REST = 9;

export interface Found {
  readonly at: Date;
  readonly rows: readonly LockSummary[];
  readonly more: boolean;
}

/** All keys that are in use, searched again while a page is open. All pages share a search. */
export class Inventory {
  readonly #admin: LockAdmin;
  readonly #clock: Clock;
  #last: Found | undefined;
  #searching: Promise<void> | undefined;
  #nextAtMs = -Infinity;
  /** What operators have done. */
  #deeds = 0;

  constructor(admin: LockAdmin, clock: Clock) {
    this.#admin = admin;
    this.#clock = clock;
  }

  /** What was found last; nothing while the first search lasts. Rejects when the store cannot be searched. */
  async get(): Promise<Found | undefined> {
    const nowMs = this.#clock.now().monotonicMs;
    if (nowMs >= this.#nextAtMs) this.#searching ??= this.#search();
    if (this.#searching !== undefined) await Promise.race([this.#searching, pause(PATIENCE_MS)]);
    return this.#last;
  }

  /** What an operator has just done is seen at once: a search that is under way may have passed it. */
  forget(): void {
    this.#nextAtMs = -Infinity;
    this.#deeds += 1;
  }

  async #search(): Promise<void> {
    const { monotonicMs: startedAtMs, wallMs } = this.#clock.now();
    const deeds = this.#deeds;
    try {
      const rows: LockSummary[] = [];
      for await (const row of this.#admin.list({ limit: MOST_KEYS + 1 })) rows.push(row);
      const more = rows.length > MOST_KEYS;
      this.#last = { at: new Date(wallMs), rows: rows.slice(0, MOST_KEYS), more };
    } catch (error) {
      // What was found before is not so any more, as far as is known.
      this.#last = undefined;
      throw error;
    } finally {
      this.#searching = undefined;
      const endedAtMs = this.#clock.now().monotonicMs;
      if (this.#deeds === deeds)
        this.#nextAtMs = endedAtMs + Math.max(EVERY_MS - 100, REST * (endedAtMs - startedAtMs));
    }
  }
}

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
