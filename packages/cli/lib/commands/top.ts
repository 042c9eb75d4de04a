import type { HotKey, HotKeys } from 'nestjs-holdfast/admin';
import type { RunWithRedis } from '../command.js';
import { live } from '../live.js';
import type { Ink } from '../text/ink.js';
import { printable } from '../text/printable.js';
import { tableLines, type Cell, type Column } from '../text/table.js';
import { lasting } from '../text/times.js';
import { fitted } from '../text/width.js';
import { counted, nameOf } from '../text/who.js';
import { countIn } from '../values.js';

const DEFAULT_LIMIT = 20;

const COLUMNS: readonly Column[] = [
  { title: 'KEY', atLeast: 12 },
  { title: 'WAITING', align: 'right' },
  { title: 'OLDEST', align: 'right' },
  { title: 'WAITED', align: 'right', leaveOut: 1 },
  { title: 'WAITS', align: 'right', leaveOut: 2 },
  { title: 'EACH', align: 'right', leaveOut: 3 },
  { title: 'REFUSED', align: 'right', leaveOut: 4 },
];

/** Keys that callers wait for. */
export const top: RunWithRedis = (context) => {
  const { admin, options, ink, runtime } = context;
  const limit = countIn(options.limit, DEFAULT_LIMIT);
  return live(context, async () => {
    const hot = await admin().hot(limit);
    const nowMs = runtime.now().wallMs;
    return {
      facts: hot,
      isEmpty: hot.keys.length === 0 && hot.waiting.length === 0,
      draw: ({ columns }) => linesOf(hot, { columns, nowMs, limit, ink }),
    };
  });
};

interface Drawing {
  readonly columns: number;
  readonly nowMs: number;
  readonly limit: number;
  readonly ink: Ink;
}

function linesOf(hot: HotKeys, { columns, nowMs, limit, ink }: Drawing): readonly string[] {
  const rows = stuckFirst(hot)
    .slice(0, limit)
    .map((each) => rowOf(each, nowMs, ink));
  const table =
    rows.length === 0
      ? ['No caller waits, and none waited or was refused in the last 5 minutes.']
      : tableLines(COLUMNS, rows, columns, ink);
  const { unresponsive } = hot;
  if (unresponsive.length === 0) return table;
  const names = unresponsive.map(nameOf).join('; ');
  const missing = `The share of ${counted(unresponsive.length, 'unresponsive instance')} is missing: ${names}`;
  return [...table, '', ink.yellow(fitted(missing, columns))];
}

/** The oldest wait that lasts first, then what was waited for longest. */
function stuckFirst({ keys, waiting }: HotKeys): readonly HotKey[] {
  const waitedFor = new Set(waiting.map(({ key }) => key));
  return [...waiting, ...keys.filter(({ key }) => !waitedFor.has(key))];
}

function rowOf(hot: HotKey, nowMs: number, ink: Ink): readonly Cell[] {
  const { key, waiting, since, waitedMs, waits, refusals } = hot;
  const all = waits + waiting;
  return [
    printable(key),
    waiting === 0 ? '' : { text: String(waiting), paint: ink.yellow },
    since === undefined ? '' : { text: lasting(nowMs - since.getTime()), paint: ink.yellow },
    lasting(waitedMs),
    String(waits),
    all === 0 ? '' : lasting(waitedMs / all),
    refusals === 0 ? '' : String(refusals),
  ];
}
