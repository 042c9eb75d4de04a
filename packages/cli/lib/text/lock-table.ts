import type { LockSummary } from 'nestjs-holdfast/admin';
import type { Ink } from './ink.js';
import { printable } from './printable.js';
import { tableLines, type Cell, type Column } from './table.js';
import { lasting } from './times.js';
import { applicationOf, machineOf } from './who.js';

const COLUMNS: readonly Column[] = [
  { title: 'KEY', atLeast: 12 },
  { title: 'MODE', leaveOut: 3 },
  { title: 'HELD FOR', align: 'right' },
  { title: 'ENDS IN', align: 'right', leaveOut: 4 },
  { title: 'LINE', align: 'right' },
  { title: 'HOLDER', atLeast: 8, leaveOut: 2 },
  { title: 'WHERE', atLeast: 8, leaveOut: 1 },
  { title: 'ONCE', leaveOut: 5 },
];

/** The longest lines first, then what is held longest. */
export const byUrgency = (a: LockSummary, b: LockSummary): number =>
  b.waiting - a.waiting ||
  (a.since?.getTime() ?? Infinity) - (b.since?.getTime() ?? Infinity) ||
  (a.key < b.key ? -1 : 1);

/** The rows of `list` and `watch`. */
export const lockLines = (
  locks: readonly LockSummary[],
  { columns, nowMs, ink }: { readonly columns: number; readonly nowMs: number; readonly ink: Ink },
): readonly string[] =>
  tableLines(
    COLUMNS,
    locks.map((lock) => rowOf(lock, nowMs, ink)),
    columns,
    ink,
  );

function rowOf(lock: LockSummary, nowMs: number, ink: Ink): readonly Cell[] {
  const {
    key,
    state,
    mode = '',
    inUse,
    since,
    remainingMs,
    waiting,
    holders,
    instance,
    once,
  } = lock;
  const isHeld = state === 'held';
  const others = holders > 1 ? ` and ${String(holders - 1)} more` : '';
  const holder = instance === undefined ? unknownHolder(lock) : applicationOf(instance);
  const where = instance === undefined ? '' : machineOf(instance);
  return [
    printable(key),
    isHeld
      ? mode + (inUse === undefined ? '' : `, ${String(inUse)} in use`)
      : { text: 'free', paint: ink.dim },
    since === undefined ? '' : lasting(nowMs - since.getTime()),
    remainingMs === undefined ? '' : lasting(remainingMs),
    waiting === 0 ? '' : { text: String(waiting), paint: ink.yellow },
    instance?.isUnresponsive === true
      ? { text: `${holder}${others}, unresponsive`, paint: ink.red }
      : holder + others,
    where,
    once ?? '',
  ];
}

function unknownHolder({ state, isDetached = false }: LockSummary): string {
  if (isDetached) return 'detached';
  return state === 'held' ? 'not known' : '';
}
