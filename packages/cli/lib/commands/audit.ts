import type { RunWithRedis } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { exitOf } from '../nothing.js';
import { printable, toJson } from '../text/printable.js';
import { tableLines, type Column } from '../text/table.js';
import { moment } from '../text/times.js';
import { countIn } from '../values.js';

const DEFAULT_LIMIT = 20;
const MOST = 1_000;

const COLUMNS: readonly Column[] = [
  { title: 'WHEN' },
  { title: 'WHAT' },
  { title: 'KEYS', atLeast: 12 },
  { title: 'BY', atLeast: 8 },
  { title: 'REASON', atLeast: 12 },
];

/** What operators did. */
export const audit: RunWithRedis = async (context) => {
  const { admin, options, terminal, ink, target } = context;
  const isJson = options.json === true;
  const entries = await admin().audit(countIn(options.limit, isJson ? MOST : DEFAULT_LIMIT));
  if (isJson) {
    terminal.write(`${toJson(entries)}\n`);
    return exitOf(context, entries.length > 0);
  }
  terminal.note(`${ink.dim(`Redis at ${target.shown}`)}\n`);
  if (entries.length === 0) {
    terminal.note('No operator has done anything here.\n');
    return exitOf(context, false);
  }
  const rows = entries.map(({ at, action, keys, by, reason }) => [
    moment(at),
    action,
    printable(keys.join(', ')),
    printable(by),
    printable(reason),
  ]);
  terminal.write(`${tableLines(COLUMNS, rows, terminal.size().columns, ink).join('\n')}\n`);
  return EXIT.ok;
};
