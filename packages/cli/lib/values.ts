import { describe } from 'nestjs-holdfast/tools';
import { SORTS } from './options.js';
import { ORDERS, type Order } from './order.js';
import { suggestion, UsageError } from './usage-error.js';

/** @throws UsageError unless it is a whole number from 1 on */
export function countIn(text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback;
  const count = Number(text);
  if (!/^\d+$/.test(text) || count < 1 || !Number.isSafeInteger(count))
    throw new UsageError(
      `Option --limit must be a whole number from 1 on, received ${describe(text)}.`,
    );
  return count;
}

const UNITS = { ms: 1, s: 1_000, m: 60_000, min: 60_000 };
const SHORTEST_MS = 100;
const LONGEST_MS = 3_600_000;

/** @throws UsageError unless it is a time with a unit, from 100 ms to an hour */
export function intervalIn(text = '2s'): number {
  const [, amount = '', unit = ''] = /^(\d+(?:\.\d+)?)(ms|s|m|min)$/.exec(text) ?? [];
  const ms = Number(amount) * ((UNITS[unit as keyof typeof UNITS] as number | undefined) ?? 0);
  if (ms >= SHORTEST_MS && ms <= LONGEST_MS) return ms;
  throw new UsageError(
    `Option --interval must be a time from 100ms to 60min with its unit, such as 500ms or 2s, received ${describe(text)}.`,
  );
}

/** @throws UsageError unless it is one of the orders */
export function orderIn(text = 'waiting'): Order {
  const name = SORTS.find((each) => each === text);
  if (name !== undefined) return ORDERS[name];
  throw new UsageError(
    `Option --sort must be one of ${SORTS.join(', ')}, received ${describe(text)}.${suggestion(text, SORTS)}`,
  );
}
