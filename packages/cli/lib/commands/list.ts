import type { LockSummary } from 'nestjs-holdfast/admin';
import type { Context, RunWithRedis } from '../command.js';
import { nobodyReports, placesOf, PREFIX_HINT } from '../elsewhere.js';
import { EXIT } from '../exit-codes.js';
import { withServers } from '../servers.js';
import { byUrgency, lockLines } from '../text/lock-table.js';
import { toJson } from '../text/printable.js';
import { counted } from '../text/who.js';
import { countIn } from '../values.js';

const DEFAULT_LIMIT = 100;

/** A table is sorted, so all of them are looked at before the first is shown. */
const MOST_SORTED = 10_000;

/** Who holds which key. */
export const list: RunWithRedis = async (context) => {
  const found = await (context.options.json === true ? printAll(context) : printTable(context));
  return found > 0 || (await someServiceReports(context)) ? EXIT.ok : EXIT.nothing;
};

/** Where no service reports, nothing that is found means little. Says where services report. */
async function someServiceReports(context: Context): Promise<boolean> {
  const { admin, terminal, ink, target, runtime } = context;
  if ((await admin().instances()).length > 0) return true;
  const places = await withServers(target, runtime, async ({ servers }) =>
    (await Promise.all(servers.map(placesOf))).flat(),
  );
  const text = nobodyReports([...new Set(places)]);
  terminal.note(`${ink.yellow(text)}\n${places.length > 0 ? `${PREFIX_HINT}\n` : ''}`);
  return false;
}

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
async function printAll({ admin, word, options, terminal }: Context): Promise<number> {
  const limit = countIn(options.limit, Infinity);
  let between = '[';
  let count = 0;
  for await (const lock of admin().list({ prefix: word, limit })) {
    count += 1;
    terminal.write(`${between}\n${toJson(lock)}`);
    between = ',';
  }
  terminal.write(between === '[' ? '[]\n' : '\n]\n');
  return count;
}

async function printTable(context: Context): Promise<number> {
  const { terminal, ink, runtime, options, target } = context;
  const limit = countIn(options.limit, DEFAULT_LIMIT);
  terminal.note(`${ink.dim(`Redis at ${target.shown}`)}\n`);
  const { locks, found } = await mostUrgent(context, limit);
  if (found === 0) {
    terminal.note('Nothing is held, and no caller waits.\n');
    return 0;
  }
  const { columns } = terminal.size();
  const nowMs = runtime.now().wallMs;
  terminal.write(`${lockLines(locks, { columns, nowMs, ink }).join('\n')}\n`);
  if (found > locks.length)
    terminal.note(
      `${String(locks.length)} of ${foundText(found)}, those with the longest lines. All of them: --limit ${String(found)}, or --json.\n`,
    );
  return found;
}

/** How many keys there are, as far as they were read. */
export const foundText = (found: number): string =>
  found < MOST_SORTED ? counted(found, 'key') : `${String(MOST_SORTED)} keys or more`;
