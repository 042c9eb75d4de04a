import { LockError } from 'nestjs-holdfast';
import type { LockAdmin, LockSummary } from 'nestjs-holdfast/admin';
import type { BoardHealth, BoardKey, BoardSnapshot, BoardContext } from './board.types.js';
import type { Clock } from './clock.js';
import { Remembered } from './remembered.js';

/** At most this many keys are shown at once; the search finds the others. */
export const MOST_LOCKS = 200;

const MOST_HOT = 10;
const MOST_AUDITED = 20;

/** How old what is known of instances and servers may be, in ms: to ask all of them every second would be work for nothing. */
const SURROUNDINGS_MS = 5_000;

/** Where the health of the servers comes from: `LockService`. */
export interface HealthSource {
  health(): Promise<BoardHealth>;
}

/** What the page shows, as those who look at it share it. */
export class BoardData {
  readonly #admin: LockAdmin;
  readonly #clock: Clock;
  readonly #surroundings: Remembered<BoardContext>;
  readonly #health: Remembered<BoardHealth>;

  constructor(admin: LockAdmin, source: HealthSource, clock: Clock) {
    this.#admin = admin;
    this.#clock = clock;
    this.#surroundings = new Remembered(
      async () => {
        const [instances, hot, audit] = await Promise.all([
          admin.instances(),
          admin.hot(MOST_HOT),
          admin.audit(MOST_AUDITED),
        ]);
        return { instances, hot, audit };
      },
      SURROUNDINGS_MS,
      clock,
    );
    this.#health = new Remembered(() => source.health(), SURROUNDINGS_MS, clock);
  }

  /** All keys with a prefix, in alphabetical order. Never rejects: an outage of the store is part of the snapshot. */
  async snapshot(prefix: string): Promise<BoardSnapshot> {
    const [looked, surroundings, health] = await Promise.all([
      answerOf(this.#firstLocks(prefix)),
      answerOf(this.#surroundings.get()),
      answerOf(this.#health.get()),
    ]);
    return {
      at: this.#now(),
      locks: looked.value?.locks ?? [],
      more: looked.value?.more ?? false,
      ...surroundings.value,
      health: health.value,
      problem: looked.problem ?? surroundings.problem,
    };
  }

  /** Everything about one key. What is wrong with the key or the store is said, and does not reject. */
  async key(key: string): Promise<BoardKey> {
    const { value, problem } = await answerOf(this.#admin.describe(key));
    return { at: this.#now(), ...(value && { lock: value }), problem };
  }

  /** What an operator has just done is seen at once. */
  forget(): void {
    this.#surroundings.forget();
  }

  async #firstLocks(prefix: string): Promise<{ locks: readonly LockSummary[]; more: boolean }> {
    const locks: LockSummary[] = [];
    for await (const lock of this.#admin.list({ prefix, limit: MOST_LOCKS + 1 })) locks.push(lock);
    const more = locks.length > MOST_LOCKS;
    return { locks: locks.slice(0, MOST_LOCKS).sort(byKey), more };
  }

  #now(): Date {
    return new Date(this.#clock.now().wallMs);
  }
}

const byKey = (one: LockSummary, other: LockSummary): number => (one.key < other.key ? -1 : 1);

/** `detail` is the text for operators: what `message` says is for clients. */
async function answerOf<T>(asked: Promise<T>): Promise<{ value?: T; problem?: string }> {
  try {
    return { value: await asked };
  } catch (error) {
    if (error instanceof LockError) return { problem: error.detail };
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

/** What changes with every look, although nothing has happened. */
const PASSING = new Set([
  'at',
  'seenAt',
  'remainingMs',
  'latencyMs',
  'clockOffsetMs',
  'quarantinedForMs',
]);

/** Equal for snapshots that show the same. */
export const contentOf = (snapshot: BoardSnapshot): string =>
  JSON.stringify(snapshot, (name, value: unknown) => (PASSING.has(name) ? undefined : value));
