import type { LockSummary } from 'nestjs-holdfast/admin';
import type { Ink } from './ink.js';
import { printable } from './printable.js';
import { tableLines, type Cell, type Column } from './table.js';
import { lasting } from './times.js';
import { applicationOf, machineOf } from './who.js';

/** In the order of use: columns that do not fit are left out from the right. */
const COLUMNS: readonly Column[] = [
  { title: 'STATE' },
  { title: 'KEY', atLeast: 12 },
  { title: 'HELD FOR', align: 'right', leaveOut: 1 },
  { title: 'LINE', align: 'right', leaveOut: 2 },
  { title: 'HOLDER', atLeast: 8, leaveOut: 3 },
  { title: 'WHERE', atLeast: 8, leaveOut: 4 },
  { title: 'ENDS IN', align: 'right', leaveOut: 5 },
  { title: 'MODE', leaveOut: 6 },
  { title: 'ONCE', leaveOut: 7 },
];

/** Whether one of the holders is frozen, cut off or dead. */
export const hasUnresponsiveHolder = ({ isUnresponsive }: LockSummary): boolean => isUnresponsive;

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
  const { key, state, mode = '', inUse, since, remainingMs, waiting, instance, once } = lock;
  return [
    stateOf(lock, ink),
    printable(key),
    since === undefined ? '' : lasting(nowMs - since.getTime()),
    waiting === 0 ? '' : { text: String(waiting), paint: ink.yellow },
    holderOf(lock),
    instance === undefined ? '' : machineOf(instance),
    remainingMs === undefined ? '' : lasting(remainingMs),
    mode + (inUse === undefined ? '' : `, ${String(inUse)} in use`),
    state === 'held' ? (once ?? '') : '',
  ];
}

/** In words, because colours may be off. */
function stateOf(lock: LockSummary, ink: Ink): Cell {
  const { state, isDetached, once } = lock;
  if (hasUnresponsiveHolder(lock)) return { text: 'unresponsive', paint: ink.red };
  if (isDetached === true) return { text: 'detached', paint: ink.yellow };
  if (state === 'held') return 'held';
  if (once === undefined || once === 'done')
    return { text: once === undefined ? 'free' : 'once done', paint: ink.dim };
  return { text: `once ${once}`, paint: ink.yellow };
}

function holderOf({ state, instance, holders, isDetached }: LockSummary): string {
  if (state === 'free' || (instance === undefined && isDetached === true)) return '';
  const others = holders > 1 ? ` and ${String(holders - 1)} more` : '';
  return (instance === undefined ? 'not known' : applicationOf(instance)) + others;
}
