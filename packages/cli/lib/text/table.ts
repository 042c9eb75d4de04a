import { fitted, padded, widthOf } from './width.js';
import type { Ink } from './ink.js';

export interface Column {
  readonly title: string;
  readonly align?: 'left' | 'right';
  /** The column may be cut down to this many cells. Missing: it is shown whole or not at all. */
  readonly atLeast?: number;
  /** Columns with the highest number are left out first, where they do not all fit; those without stay. */
  readonly leaveOut?: number;
}

/** A cell: its text, and how it is set off. */
export type Cell = string | { readonly text: string; readonly paint: (text: string) => string };

const GAP = '  ';

const textOf = (cell: Cell | undefined): string =>
  typeof cell === 'object' ? cell.text : (cell ?? '');

interface Placed {
  readonly column: Column;
  readonly index: number;
  width: number;
}

/**
 * The lines of a table that fits into the given columns of a terminal. Wide cells are cut with `…`, then whole columns
 * are left out. Empty columns are always left out.
 */
export function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  available: number,
  ink: Ink,
): readonly string[] {
  const placed = place(columns, rows, available);
  const line = (cells: readonly Cell[]): string =>
    placed
      .map(({ column, index, width }, place) => {
        const cell = cells[index];
        const text = fitted(textOf(cell), width);
        const isLast = place === placed.length - 1;
        const filled =
          isLast && column.align !== 'right' ? text : padded(text, width, column.align);
        return typeof cell === 'object' ? cell.paint(filled) : filled;
      })
      .join(GAP)
      .trimEnd();
  return [ink.bold(line(columns.map(({ title }) => title))), ...rows.map(line)];
}

function place(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  available: number,
): readonly Placed[] {
  const natural = columns
    .map((column, index) => {
      const widths = rows.map((row) => widthOf(textOf(row[index])));
      const isEmpty = rows.length > 0 && widths.every((width) => width === 0);
      return { column, index, isEmpty, width: Math.max(widthOf(column.title), ...widths) };
    })
    .filter(({ isEmpty }) => !isEmpty);
  for (let kept = natural; ;) {
    const placed = shrunk(kept, available);
    if (total(placed) <= available) return placed;
    const order = Math.max(...kept.map(({ column }) => column.leaveOut ?? 0));
    if (order === 0) return cut(placed, available);
    kept = kept.filter(({ column }) => column.leaveOut !== order);
  }
}

const total = (placed: readonly Placed[]): number =>
  placed.reduce((sum, { width }) => sum + width, (placed.length - 1) * GAP.length);

/** The widest of those that may be cut becomes narrower, until all fit or none can be. */
function shrunk(natural: readonly Placed[], available: number): readonly Placed[] {
  const placed = natural.map((each) => ({ ...each }));
  for (let over = total(placed) - available; over > 0;) {
    const able = placed.filter(({ column, width }) => width > (column.atLeast ?? Infinity));
    able.sort((a, b) => b.width - a.width);
    const [widest, next] = able;
    if (widest === undefined) break;
    const floor = Math.max(widest.column.atLeast ?? 0, (next?.width ?? 0) - 1);
    const by = Math.max(1, Math.min(over, widest.width - floor));
    widest.width -= by;
    over -= by;
  }
  return placed;
}

/** A terminal that is too narrow for anything: what is at the right is lost. */
function cut(placed: readonly Placed[], available: number): readonly Placed[] {
  let left = available;
  return placed.flatMap((each) => {
    const width = Math.min(each.width, left);
    left -= width + GAP.length;
    return width > 0 ? [{ ...each, width }] : [];
  });
}
