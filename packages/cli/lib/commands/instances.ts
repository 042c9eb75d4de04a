import type { RunWithRedis } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { exitOf } from '../nothing.js';
import { printable, toJson } from '../text/printable.js';
import { tableLines, type Column } from '../text/table.js';
import { lasting, moment } from '../text/times.js';
import { counted } from '../text/who.js';
import { countIn } from '../values.js';

/** In the order of use: columns that do not fit are left out from the right. */
const COLUMNS: readonly Column[] = [
  { title: 'STATE' },
  { title: 'ID' },
  { title: 'APPLICATION', atLeast: 8 },
  { title: 'HOST', atLeast: 8 },
  { title: 'PID', align: 'right' },
  { title: 'SEEN', align: 'right', leaveOut: 1 },
  { title: 'VERSION', atLeast: 5, leaveOut: 2 },
  { title: 'SERVICE', atLeast: 5, leaveOut: 3 },
  { title: 'STARTED', leaveOut: 4 },
];

/** Who uses this Redis. */
export const instances: RunWithRedis = async (context) => {
  const { admin, options, terminal, ink, runtime, target } = context;
  const limit = countIn(options.limit, Infinity);
  const all = await admin().instances();
  const wanted = options.unresponsive === true ? all.filter((each) => each.isUnresponsive) : all;
  const found = wanted.slice(0, limit);
  if (options.json === true) {
    terminal.write(`${toJson(found)}\n`);
    return exitOf(context, all.length > 0);
  }
  terminal.note(`${ink.dim(`Redis at ${target.shown}`)}\n`);
  if (found.length === 0) {
    terminal.note(
      all.length === 0
        ? 'No service has described itself here within the last hour.\n'
        : `None of ${counted(all.length, 'service')} is unresponsive.\n`,
    );
    return exitOf(context, all.length > 0);
  }
  const nowMs = runtime.now().wallMs;
  const rows = found.map((each) => [
    each.isUnresponsive ? { text: 'unresponsive', paint: ink.red } : 'reports',
    printable(each.id),
    printable(each.application),
    printable(each.host),
    String(each.pid),
    `${lasting(nowMs - each.seenAt.getTime())} ago`,
    printable(each.version ?? ''),
    printable(each.service ?? ''),
    moment(each.startedAt),
  ]);
  terminal.write(`${tableLines(COLUMNS, rows, terminal.size().columns, ink).join('\n')}\n`);
  return EXIT.ok;
};
