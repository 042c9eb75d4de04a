import { LockError } from 'nestjs-holdfast';
import type {
  AuditEntry,
  HotKeys,
  InstanceInfo,
  LockAdmin,
  LockSummary,
} from 'nestjs-holdfast/admin';
import type { BoardHealth, BoardKey, BoardSnapshot, View } from './board.types.js';
import type { Clock } from './clock.js';
import { Inventory } from './inventory.js';
import { Remembered } from './remembered.js';
import { attentionIn, keysOf, rowsOf } from './rows.js';
import { statusOf } from './status.js';

/** At most this many of the keys that callers wait for are looked at. */
const MOST_WAITED_FOR = 200;

const MOST_HOT = 10;
const MOST_AUDITED = 100;

/** How old what is known of instances and servers may be, in ms: to ask all of them every second would be work for nothing. */
const SURROUNDINGS_MS = 2_000;

/** Where the health of the servers comes from: `LockService`. */
export interface HealthSource {
  health(): Promise<BoardHealth>;
}

/** What is known beside the keys that are held. */
interface Around {
  readonly instances: readonly InstanceInfo[];
  readonly hot: HotKeys;
  readonly audit: readonly AuditEntry[];
  /** The keys that callers wait for. */
  readonly waitedFor: readonly LockSummary[];
  readonly unresponsive: readonly InstanceInfo[];
}

/** What the page shows, as those who look at it share it. */
export class BoardData {
  readonly #admin: LockAdmin;
  readonly #clock: Clock;
  readonly #inventory: Inventory;
  readonly #around: Remembered<Around>;
  readonly #health: Remembered<BoardHealth>;

  constructor(admin: LockAdmin, source: HealthSource, clock: Clock) {
    this.#admin = admin;
    this.#clock = clock;
    this.#inventory = new Inventory(admin, clock);
    this.#around = new Remembered(() => this.#lookAround(), SURROUNDINGS_MS, clock);
    this.#health = new Remembered(() => source.health(), SURROUNDINGS_MS, clock);
  }

  /** Never rejects: an outage of the store is part of the snapshot. */
  async snapshot(view: View): Promise<BoardSnapshot> {
    const [found, around, health] = await Promise.all([
      answerOf(this.#inventory.get()),
      answerOf(this.#around.get()),
      answerOf(this.#health.get()),
    ]);
    const at = this.#now();
    const { instances, hot, audit, waitedFor = [], unresponsive = [] } = around.value ?? {};
    const problem = around.problem ?? found.problem ?? health.problem;
    const status = statusOf({ health: health.value, problem, unresponsive });
    const surroundings = {
      waiting: hot?.waiting ?? [],
      unresponsive: new Set(unresponsive.map(({ id }) => id)),
    };
    const rows = rowsOf(found.value?.rows ?? [], surroundings);
    // What the processes say is newer than what a search of the store has found.
    const urgent = [...rows.filter(({ isStuck }) => isStuck), ...rowsOf(waitedFor, surroundings)];
    const callers = hot?.callers ?? 0;
    const isKnown = problem === undefined && found.value !== undefined;
    return {
      ...{ at, status, instances, audit, hot: hot?.keys.slice(0, MOST_HOT), hour: hot?.hour },
      attention: problem === undefined ? attentionIn(urgent, at.getTime()) : [],
      keys: isKnown && found.value ? keysOf(found.value, rows, view, callers) : undefined,
      unresponsive: [...surroundings.unresponsive],
      health: health.value,
    };
  }

  /** Everything about one key. What is wrong with the key or the store is said, and does not reject. */
  async key(key: string): Promise<BoardKey> {
    const [{ value, problem }, health] = await Promise.all([
      answerOf(this.#admin.describe(key)),
      answerOf(this.#health.get()),
    ]);
    const unresponsive = value?.unresponsive ?? [];
    const status = statusOf({ health: health.value, problem: health.problem, unresponsive });
    return { at: this.#now(), status, lock: value, problem };
  }

  /** What an operator has just done is seen at once. */
  forget(): void {
    this.#around.forget();
    this.#inventory.forget();
  }

  async #lookAround(): Promise<Around> {
    const [instances, hot, audit] = await Promise.all([
      this.#admin.instances(),
      this.#admin.hot(MOST_WAITED_FOR),
      this.#admin.audit(MOST_AUDITED),
    ]);
    const waitedFor: LockSummary[] = [];
    const keys = hot.waiting.map(({ key }) => key);
    for await (const row of this.#admin.list({ keys })) waitedFor.push(row);
    const silent = new Set(hot.unresponsive.map(({ id }) => id));
    const unresponsive = instances.filter((each) => each.isUnresponsive || silent.has(each.id));
    return { instances, hot, audit, waitedFor, unresponsive };
  }

  #now(): Date {
    return new Date(this.#clock.now().wallMs);
  }
}

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
