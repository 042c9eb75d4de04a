import type { LockAdminApi } from '../admin/lock-admin.types.js';
import type { NodeHealth, StoreHealth } from '../store/lock-store.js';
import type { HotKeys, InstanceInfo, LockSummary } from '../admin/lock-admin.types.js';

/** Injects the `LockAdminApi` that the page shows. */
export const LOCK_BOARD_DATA = Symbol.for('nestjs-holdfast:board-data');

/** So many keys are shown at once; the search finds the others. */
export const MOST_LOCKS = 200;

const MOST_HOT = 10;

/** What the page shows of all keys. Dates become ISO texts on the way. */
export interface BoardSnapshot {
  readonly at: Date;
  readonly locks: readonly LockSummary[];
  /** There are more keys than these. */
  readonly more: boolean;
  readonly instances: readonly InstanceInfo[];
  readonly hot: HotKeys;
  readonly health: BoardHealth;
  /** The store could not be asked: only `health` is known. */
  readonly outage?: true;
}

/** `StoreHealth`, without what only a log needs. */
export interface BoardHealth {
  readonly nodes: readonly NodeHealth[];
  readonly quorum: number;
  readonly hasQuorum: boolean;
}

/** Where the health of the nodes comes from: `LockService`. */
export interface HealthSource {
  health(): Promise<StoreHealth>;
}

/** The first keys with this prefix, in alphabetical order, and whether there are more. */
export async function firstLocks(
  data: LockAdminApi,
  prefix: string,
  limit = MOST_LOCKS,
): Promise<{ locks: LockSummary[]; more: boolean }> {
  const locks: LockSummary[] = [];
  for await (const lock of data.list({ prefix, limit: limit + 1 })) locks.push(lock);
  const more = locks.length > limit;
  const shown = locks.slice(0, limit).sort((one, other) => (one.key < other.key ? -1 : 1));
  return { locks: shown, more };
}

/** Never rejects for an outage of the store: then it says so. */
export async function takeSnapshot(
  data: LockAdminApi,
  source: HealthSource,
  prefix: string,
  at: Date,
): Promise<BoardSnapshot> {
  const health = await source.health();
  try {
    const [{ locks, more }, instances, hot] = await Promise.all([
      firstLocks(data, prefix),
      data.instances(),
      data.hot(MOST_HOT),
    ]);
    return { at, locks, more, instances, hot, health };
  } catch {
    const hot = { keys: [], silent: [] };
    return { at, locks: [], more: false, instances: [], hot, health, outage: true };
  }
}

/** What changes with every look, although nothing has happened. */
const PASSING = new Set(['at', 'remainingMs', 'latencyMs', 'clockOffsetMs']);

/** Equal for snapshots that show the same. */
export const contentOf = (snapshot: BoardSnapshot): string =>
  JSON.stringify(snapshot, (name, value: unknown) => (PASSING.has(name) ? undefined : value));
