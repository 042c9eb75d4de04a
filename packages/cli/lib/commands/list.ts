import type { LockSummary } from 'nestjs-holdfast/admin';
import type { Context, RunWithRedis } from '../command.js';
import { exitOf } from '../nothing.js';
import type { GivenOptions } from '../options.js';
import type { Order } from '../order.js';
import { hasUnresponsiveHolder, lockLines } from '../text/lock-table.js';
import { toJson } from '../text/printable.js';
import { counted } from '../text/who.js';
import { countIn, orderIn } from '../values.js';

/** Who holds which key. */
export const list: RunWithRedis = async (context) => {
  const isListed = context.options.json === true && context.options.sort === undefined;
  const seen = await (isListed ? printAll(context) : printSorted(context));
  return exitOf(context, seen > 0, context.word === '' ? 'no keys' : 'keys');
};

/** The keys that come first, and how many there are. */
interface Found {
  readonly locks: readonly LockSummary[];
  readonly found: number;
  /** With those that were not asked for. */
  readonly seen: number;
}

/** Which keys are asked for. */
interface Selection {
  readonly order: Order;
  readonly limit: number;
  /** Reads no more than that. */
  readonly most: number;
}

/** A table is sorted, so all keys are read before the first is shown. */
const MOST_SORTED = 10_000;

const DEFAULT_LIMIT = 100;

/** @throws UsageError for an order or a number that is wrong */
export const tableOf = ({ sort, limit }: GivenOptions): Selection => ({
  ...{ order: orderIn(sort), limit: countIn(limit, DEFAULT_LIMIT), most: MOST_SORTED },
});

export async function firstKeys(
  { admin, word, options }: Context,
  { order, limit, most }: Selection,
): Promise<Found> {
  const locks: LockSummary[] = [];
  let seen = 0;
  for await (const lock of admin().list({ prefix: word })) {
    seen += 1;
    if (isWanted(lock, options)) locks.push(lock);
    if (locks.length === most) break;
  }
  return { locks: locks.sort(order.compare).slice(0, limit), found: locks.length, seen };
}

/** The options that choose keys. */
const CHOICES = {
  unresponsive: hasUnresponsiveHolder,
  detached: ({ isDetached }: LockSummary) => isDetached === true,
  failed: ({ once }: LockSummary) => once === 'failed' || once === 'exhausted',
};

const CHOICE_NAMES = ['unresponsive', 'detached', 'failed'] as const;

/** Several options choose more keys than one. */
function isWanted(lock: LockSummary, options: GivenOptions): boolean {
  const given = CHOICE_NAMES.filter((name) => options[name] === true);
  return given.length === 0 || given.some((name) => CHOICES[name](lock));
}

/** As they come: there may be a million. */
async function printAll({ admin, word, options, terminal }: Context): Promise<number> {
  const limit = countIn(options.limit, Infinity);
  let between = '[';
  let seen = 0;
  let printed = 0;
  for await (const lock of admin().list({ prefix: word })) {
    seen += 1;
    if (!isWanted(lock, options)) continue;
    terminal.write(`${between}\n${toJson(lock)}`);
    between = ',';
    printed += 1;
    if (printed === limit) break;
  }
  terminal.write(printed === 0 ? '[]\n' : '\n]\n');
  return seen;
}

async function printSorted(context: Context): Promise<number> {
  const { terminal, ink, runtime, options, target } = context;
  if (options.json === true) {
    const limit = countIn(options.limit, Infinity);
    const all = { order: orderIn(options.sort), limit, most: Infinity };
    const { locks, seen } = await firstKeys(context, all);
    terminal.write(`${toJson(locks)}\n`);
    return seen;
  }
  const table = tableOf(options);
  terminal.note(`${ink.dim(`Redis at ${target.shown}`)}\n`);
  const { locks, found, seen } = await firstKeys(context, table);
  if (found === 0) {
    terminal.note(`${nothingText(seen, options)}\n`);
    return seen;
  }
  const { columns } = terminal.size();
  const nowMs = runtime.now().wallMs;
  terminal.write(`${lockLines(locks, { columns, nowMs, ink }).join('\n')}\n`);
  if (found > locks.length)
    terminal.note(
      `${String(locks.length)} of ${foundText(found)}, ${table.order.first}. All of them: --limit ${String(found)}, or --json.\n`,
    );
  return seen;
}

/** @param seen how many keys were read */
function nothingText(seen: number, options: GivenOptions): string {
  if (seen === 0) return 'Nothing is held, and no caller waits.';
  const given = CHOICE_NAMES.filter((name) => options[name] === true);
  return `None of ${counted(seen, 'key')} is ${given.join(' or ')}.`;
}

/** How many keys there are, as far as they were read. */
export const foundText = (found: number): string =>
  found < MOST_SORTED ? counted(found, 'key') : `${String(MOST_SORTED)} keys or more`;
