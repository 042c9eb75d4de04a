import type { HotKeys } from 'nestjs-holdfast/admin';
import type { RunWithRedis } from '../command.js';
import { live } from '../live.js';
import type { Ink } from '../text/ink.js';
import { printable } from '../text/printable.js';
import { tableLines, type Column } from '../text/table.js';
import { lasting } from '../text/times.js';
import { fitted } from '../text/width.js';
import { counted, nameOf } from '../text/who.js';
import { countIn } from '../values.js';

const DEFAULT_LIMIT = 20;

const COLUMNS: readonly Column[] = [
  { title: 'KEY', atLeast: 12 },
  { title: 'WAITED', align: 'right' },
  { title: 'WAITS', align: 'right' },
  { title: 'EACH', align: 'right', leaveOut: 1 },
  { title: 'REFUSED', align: 'right', leaveOut: 2 },
];

/** Keys that callers wait for. */
export const top: RunWithRedis = (context) => {
  const { admin, options, ink } = context;
  const limit = countIn(options.limit, DEFAULT_LIMIT);
  return live(context, async () => {
    const hot = await admin().hot(limit);
    return { facts: hot, draw: ({ columns }) => linesOf(hot, columns, ink) };
  });
};

function linesOf({ keys, unresponsive }: HotKeys, columns: number, ink: Ink): readonly string[] {
  const rows = keys.map(({ key, waitedMs, waits, refusals }) => [
    printable(key),
    lasting(waitedMs),
    String(waits),
    waits === 0 ? '' : lasting(waitedMs / waits),
    refusals === 0 ? '' : String(refusals),
  ]);
  const table =
    keys.length === 0
      ? ['No caller waited or was refused in the last 5 minutes.']
      : tableLines(COLUMNS, rows, columns, ink);
  if (unresponsive.length === 0) return table;
  const names = unresponsive.map(nameOf).join('; ');
  const missing = `The share of ${counted(unresponsive.length, 'unresponsive instance')} is missing: ${names}`;
  return [...table, '', ink.yellow(fitted(missing, columns))];
}
