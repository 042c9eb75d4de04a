import { LockError } from 'nestjs-holdfast';
import type {
  AuditEntry,
  HotKeys,
  InstanceInfo,
  LockAdmin,
  LockSummary,
} from 'nestjs-holdfast/admin';
import type { BoardAudit, BoardHealth, BoardKey, BoardSnapshot, View } from './board.types.js';
import type { Clock } from './clock.js';
import { Inventory, type Found } from './inventory.js';
import { Remembered } from './remembered.js';
import { attentionIn, rowsOf, SortedRows } from './rows.js';
import { statusOf } from './status.js';

/** At most this many of the keys that callers wait for are looked at. */
const MOST_WAITED_FOR = 200;

/** An instance that was not heard for so long, in ms, has missed three reports. */
const OVERDUE_MS = 15_000;

const MOST_HOT = 10;
const MOST_AUDITED = 100;

/** More keys of one intervention are counted. */
const MOST_NAMED = 3;

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
  /** Missing if the Redis user may not read it. */
  readonly audit: readonly BoardAudit[] | undefined;
  /** The keys that callers wait for. */
  readonly waitedFor: readonly LockSummary[];
  /** The instances that did not reply at two looks, or are overdue. */
  readonly unresponsive: readonly InstanceInfo[];
}

/** What the page shows, as those who look at it share it. */
export class BoardData {
  readonly #admin: LockAdmin;
  readonly #clock: Clock;
  readonly #inventory: Inventory;
  readonly #around: Remembered<Around>;
  readonly #health: Remembered<BoardHealth>;
  #sorted: SortedRows | undefined;
  #sortedWith: Around | undefined;
  #silentBefore: ReadonlySet<string> = new Set();

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
    const problem = around.problem ?? found.problem ?? health.problem;
    const rows = this.#rowsOf(found.value, around.value);
    const unresponsive = troubling(around.value?.unresponsive ?? [], rows);
    const status = statusOf({ health: health.value, problem, unresponsive });
    const known = { at, status, health: health.value };
    // A replica may lack what its master has.
    const isReplica = status.level === 'bad' && status.section === 'after-a-fail-over';
    if (problem !== undefined || around.value === undefined || isReplica)
      return { ...known, attention: [], unresponsive: [] };
    const { instances, hot, audit, waitedFor } = around.value;
    // What the processes say is newer than what a search of the store has found.
    const urgent = [
      ...(rows?.rows.filter(({ isUnresponsive }) => isUnresponsive) ?? []),
      ...rowsOf(waitedFor, hot.waiting),
    ];
    return {
      ...{ ...known, instances, audit, hot: hot.keys.slice(0, MOST_HOT), hour: hot.hour },
      attention: attentionIn(urgent, at.getTime()),
      keys: rows?.keysOf(view, hot.callers),
      unresponsive: around.value.unresponsive.map(({ id }) => id),
    };
  }

  /** Everything about one key. What is wrong with the key or the store is said, and does not reject. */
  async key(key: string): Promise<BoardKey> {
    const [{ value, problem }, around, health] = await Promise.all([
      answerOf(this.#admin.describe(key)),
      answerOf(this.#around.get()),
      answerOf(this.#health.get()),
    ]);
    const unresponsive = troubling(around.value?.unresponsive ?? [], this.#sorted);
    const status = statusOf({
      ...{ health: health.value, problem: around.problem ?? health.problem, unresponsive },
    });
    const lock = value && { ...value, audit: value.audit.map(shortened) };
    return { at: this.#now(), status, lock, problem };
  }

  /** What an operator has just done is seen at once. */
  forget(): void {
    this.#around.forget();
    this.#inventory.forget();
  }

  #rowsOf(found: Found | undefined, around: Around | undefined): SortedRows | undefined {
    if (found === undefined) this.#sorted = undefined;
    else if (this.#sorted?.found !== found || this.#sortedWith !== around) {
      this.#sorted = new SortedRows(found, around?.hot.waiting ?? []);
      this.#sortedWith = around;
    }
    return this.#sorted;
  }

  async #lookAround(): Promise<Around> {
    const [instances, hot, audit] = await Promise.all([
      this.#admin.instances(),
      this.#admin.hot(MOST_WAITED_FOR),
      // No right is needed for it elsewhere.
      answerOf(this.#admin.audit(MOST_AUDITED)),
    ]);
    const waitedFor: LockSummary[] = [];
    const keys = hot.waiting.map(({ key }) => key);
    for await (const row of this.#admin.list({ keys })) waitedFor.push(row);
    // A process that has just been heard may be busy for a moment.
    const overdueMs = this.#clock.now().wallMs - OVERDUE_MS;
    const unresponsive = instances.filter(
      ({ id, isUnresponsive, seenAt }) =>
        isUnresponsive && (this.#silentBefore.has(id) || seenAt.getTime() < overdueMs),
    );
    this.#silentBefore = new Set(
      instances.flatMap(({ id, isUnresponsive }) => (isUnresponsive ? [id] : [])),
    );
    return { instances, hot, audit: audit.value?.map(shortened), waitedFor, unresponsive };
  }

  #now(): Date {
    return new Date(this.#clock.now().wallMs);
  }
}

/** Processes that others may have to do without: of those that are gone and hold nothing, nothing has to be done. */
const troubling = (
  unresponsive: readonly InstanceInfo[],
  rows: SortedRows | undefined,
): readonly InstanceInfo[] => {
  if (rows === undefined) return unresponsive;
  const holding = new Set(
    rows.rows
      .flatMap((row) => (row.isUnresponsive ? row.leases : []))
      .map((each) => each.instanceId),
  );
  return unresponsive.filter(({ id }) => holding.has(id));
};

/** An intervention may have ended tens of thousands of locks. */
const shortened = (entry: AuditEntry): BoardAudit => ({
  ...entry,
  keys: entry.keys.slice(0, MOST_NAMED),
  others: Math.max(0, entry.keys.length - MOST_NAMED),
});

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
