import type { LockSummary } from '../../admin/lock-admin.types.js';
import { countIn } from '../arguments.js';
import type { Context, RedisCommand } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { byUrgency, lockLines } from '../text/lock-table.js';
import { toJson } from '../text/printable.js';
import { counted } from '../text/who.js';

const DEFAULT_LIMIT = 100;

/** A table is sorted, so all of them are looked at before the first is shown. */
const MOST_SORTED = 10_000;

/** Who holds which key. */
export const list: RedisCommand = {
  works: 'with-redis',
  name: 'list',
  summary: 'Keys that are held, waited for or marked as done',
  word: { name: 'start-of-keys', isRequired: false },
  options: ['limit'],
  async run(context) {
    if (context.options.json === true) await printAll(context);
    else await printTable(context);
    return EXIT.ok;
  },
};

/** The keys with the longest lines, and how many there are. */
export async function mostUrgent(
  { admin, word }: Context,
  limit: number,
): Promise<{ readonly locks: readonly LockSummary[]; readonly found: number }> {
  const locks: LockSummary[] = [];
  for await (const lock of admin().list({ prefix: word, limit: MOST_SORTED })) locks.push(lock);
  return { locks: locks.sort(byUrgency).slice(0, limit), found: locks.length };
}

/** As they come: there may be a million. */
async function printAll({ admin, word, options, terminal }: Context): Promise<void> {
  const limit = countIn(options.limit, Infinity);
  let between = '[';
  for await (const lock of admin().list({ prefix: word, limit })) {
    terminal.write(`${between}\n${toJson(lock)}`);
    between = ',';
  }
  terminal.write(between === '[' ? '[]\n' : '\n]\n');
}

async function printTable(context: Context): Promise<void> {
  const { terminal, ink, runtime, options, target } = context;
  const limit = countIn(options.limit, DEFAULT_LIMIT);
  terminal.note(`${ink.dim(`Redis at ${target.shown}`)}\n`);
  const { locks, found } = await mostUrgent(context, limit);
  if (found === 0) {
    terminal.note('Nothing is held, and no caller waits.\n');
    return;
  }
  const { columns } = terminal.size();
  const nowMs = runtime.now().wallMs;
  terminal.write(`${lockLines(locks, { columns, nowMs, ink }).join('\n')}\n`);
  if (found > locks.length)
    terminal.note(
      `${String(locks.length)} of ${foundText(found)}, those with the longest lines. All of them: --limit ${String(found)}, or --json.\n`,
    );
}

/** How many keys there are, as far as they were read. */
export const foundText = (found: number): string =>
  found < MOST_SORTED ? counted(found, 'key') : `${String(MOST_SORTED)} keys or more`;
