import type { HotKey, LockSummary } from 'nestjs-holdfast/admin';
import type { BoardKeys, BoardRow, View } from './board.types.js';
import type { Found } from './inventory.js';

/** How many keys a page of the table has. */
export const ROWS_A_PAGE = 50;

const MOST_ATTENTION = 6;

/** A shorter wait is nothing to look at. */
const LONG_WAIT_MS = 5_000;

/** What is known of callers and processes beside what the store says. */
export interface Surroundings {
  readonly waiting: readonly HotKey[];
  /** The ids of instances. */
  readonly unresponsive: ReadonlySet<string>;
}

export function rowsOf(
  summaries: readonly LockSummary[],
  { waiting, unresponsive }: Surroundings,
): readonly BoardRow[] {
  const hot = new Map(waiting.map((each) => [each.key, each]));
  return summaries.map((row) => {
    const known = hot.get(row.key);
    return {
      ...row,
      isStuck: row.leases.some(({ instanceId = '' }) => unresponsive.has(instanceId)),
      ...(known && { callers: known.waiting }),
      ...(known?.since && { waitingSince: known.since }),
    };
  });
}

const sinceOf = ({ since }: BoardRow): number => since?.getTime() ?? Infinity;

const waitsSinceOf = ({ waitingSince }: BoardRow): number => waitingSince?.getTime() ?? Infinity;

const byKey = (one: BoardRow, other: BoardRow): number => (one.key < other.key ? -1 : 1);

/** Equal rows are in the order of their keys. */
const by =
  (...orders: readonly ((row: BoardRow) => number)[]) =>
  (one: BoardRow, other: BoardRow): number => {
    for (const order of orders) {
      const [a, b] = [order(one), order(other)];
      if (a !== b) return a - b;
    }
    return byKey(one, other);
  };

const peopleIn = ({ callers = 0, waiting }: BoardRow): number => Math.max(callers, waiting);

const ORDERS: Readonly<Record<View['sort'], (one: BoardRow, other: BoardRow) => number>> = {
  waiting: by((row) => -peopleIn(row), sinceOf),
  since: by(sinceOf),
  key: byKey,
};

const FILTERS: Readonly<Record<View['filter'], (row: BoardRow) => boolean>> = {
  all: () => true,
  'waited-for': (row) => peopleIn(row) > 0,
  unresponsive: ({ isStuck }) => isStuck,
  detached: ({ isDetached }) => isDetached === true,
  'once-failed': ({ once }) => once === 'failed' || once === 'exhausted',
  leaders: ({ isLeader }) => isLeader === true,
};

/**
 * What an operator should look at first: keys of unresponsive processes that others wait for, then the longest waits,
 * then the other keys of such processes.
 */
export function attentionIn(rows: Iterable<BoardRow>, nowMs: number): readonly BoardRow[] {
  const seen = new Map([...rows].map((row) => [row.key, row]));
  const rank = (row: BoardRow): number => {
    if (row.isStuck && peopleIn(row) > 0) return 0;
    return nowMs - waitsSinceOf(row) >= LONG_WAIT_MS ? 1 : 2;
  };
  return [...seen.values()]
    .filter((row) => row.isStuck || rank(row) === 1)
    .sort(by(rank, waitsSinceOf, sinceOf))
    .slice(0, MOST_ATTENTION);
}

/** The page of the keys that a browser wants. */
export function keysOf(
  found: Found,
  rows: readonly BoardRow[],
  view: View,
  callers: number,
): BoardKeys {
  const { search, filter, sort, page, instance } = view;
  const wanted = rows
    .filter(FILTERS[filter])
    .filter(({ key }) => key.includes(search))
    .filter((row) => instance === '' || isOf(row, instance))
    .sort(ORDERS[sort]);
  const pages = Math.max(1, Math.ceil(wanted.length / ROWS_A_PAGE));
  const shown = Math.min(page, pages);
  return {
    ...{ at: found.at, more: found.more, found: wanted.length, page: shown, pages, callers },
    rows: wanted.slice((shown - 1) * ROWS_A_PAGE, shown * ROWS_A_PAGE),
    held: rows.filter(({ state }) => state === 'held').length,
    waiting: rows.reduce((sum, { waiting }) => sum + waiting, 0),
  };
}

const isOf = ({ leases, waitingInstanceIds }: BoardRow, id: string): boolean =>
  leases.some(({ instanceId }) => instanceId === id) || waitingInstanceIds.includes(id);
