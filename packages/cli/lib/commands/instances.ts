import type { RunWithRedis } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { printable, toJson } from '../text/printable.js';
import { tableLines, type Column } from '../text/table.js';
import { lasting, moment } from '../text/times.js';
import { countIn } from '../values.js';

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'APPLICATION', atLeast: 8 },
  { title: 'VERSION', atLeast: 5, leaveOut: 3 },
  { title: 'SERVICE', atLeast: 5, leaveOut: 4 },
  { title: 'HOST', atLeast: 8 },
  { title: 'PID', align: 'right' },
  { title: 'STARTED', leaveOut: 2 },
  { title: 'SEEN', align: 'right', leaveOut: 1 },
  { title: 'STATE', leaveOut: 1 },
];

/** Who uses this Redis. */
export const instances: RunWithRedis = async ({
  admin,
  options,
  terminal,
  ink,
  runtime,
  target,
}) => {
  const limit = countIn(options.limit, Infinity);
  const found = (await admin().instances()).slice(0, limit);
  if (options.json === true) {
    terminal.write(`${toJson(found)}\n`);
    return EXIT.ok;
  }
  terminal.note(`${ink.dim(`Redis at ${target.shown}`)}\n`);
  if (found.length === 0) {
    terminal.note('No service has described itself here within the last hour.\n');
    return EXIT.ok;
  }
  const nowMs = runtime.now().wallMs;
  const rows = found.map((each) => [
    printable(each.id),
    printable(each.application),
    printable(each.version ?? ''),
    printable(each.service ?? ''),
    printable(each.host),
    String(each.pid),
    moment(each.startedAt),
    `${lasting(nowMs - each.seenAt.getTime())} ago`,
    each.isUnresponsive ? { text: 'unresponsive', paint: ink.red } : 'reports',
  ]);
  terminal.write(`${tableLines(COLUMNS, rows, terminal.size().columns, ink).join('\n')}\n`);
  return EXIT.ok;
};
