import type { HotKey, LockSummary } from 'nestjs-holdfast/admin';
import type { BoardKeys, BoardRow, View } from './board.types.js';
import type { Found } from './inventory.js';

/** How many keys a page of the table has. */
export const ROWS_A_PAGE = 50;

const MOST_ATTENTION = 6;

/** A shorter wait is nothing to look at. */
const LONG_WAIT_MS = 5_000;

/** @param waiting what the processes say of the callers that wait */
export function rowsOf(
  summaries: readonly LockSummary[],
  waiting: readonly HotKey[],
): readonly BoardRow[] {
  const hot = new Map(waiting.map((each) => [each.key, each]));
  return summaries.map((row) => {
    const known = hot.get(row.key);
    return {
      ...row,
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
  unresponsive: ({ isUnresponsive }) => isUnresponsive,
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
    if (row.isUnresponsive && peopleIn(row) > 0) return 0;
    return nowMs - waitsSinceOf(row) >= LONG_WAIT_MS ? 1 : 2;
  };
  return [...seen.values()]
    .filter((row) => row.isUnresponsive || rank(row) === 1)
    .sort(by(rank, waitsSinceOf, sinceOf))
    .slice(0, MOST_ATTENTION);
}

/** All keys, as several browsers look at them: each order is made once. */
export class SortedRows {
  readonly found: Found;
  readonly rows: readonly BoardRow[];
  readonly #sorted = new Map<View['sort'], readonly BoardRow[]>();
  readonly #held: number;
  readonly #waiting: number;

  constructor(found: Found, waiting: readonly HotKey[]) {
    this.found = found;
    this.rows = rowsOf(found.rows, waiting);
    this.#held = this.rows.filter(({ state }) => state === 'held').length;
    this.#waiting = this.rows.reduce((sum, row) => sum + row.waiting, 0);
  }

  /** The page of the keys that a browser wants. */
  keysOf({ search, filter, sort, page, instance }: View, callers: number): BoardKeys {
    const isWanted = FILTERS[filter];
    const wanted = this.#by(sort).filter(
      (row) =>
        isWanted(row) && row.key.includes(search) && (instance === '' || isOf(row, instance)),
    );
    const pages = Math.max(1, Math.ceil(wanted.length / ROWS_A_PAGE));
    const shown = Math.min(page, pages);
    const { at, more } = this.found;
    return {
      ...{ at, more, found: wanted.length, page: shown, pages, callers },
      rows: wanted.slice((shown - 1) * ROWS_A_PAGE, shown * ROWS_A_PAGE),
      ...{ held: this.#held, waiting: this.#waiting },
    };
  }

  #by(sort: View['sort']): readonly BoardRow[] {
    const known = this.#sorted.get(sort);
    if (known !== undefined) return known;
    const sorted = this.rows.toSorted(ORDERS[sort]);
    this.#sorted.set(sort, sorted);
    return sorted;
  }
}

const isOf = ({ leases, waitingInstanceIds }: BoardRow, id: string): boolean =>
  leases.some(({ instanceId }) => instanceId === id) || waitingInstanceIds.includes(id);
