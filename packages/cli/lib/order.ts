import type { LockSummary } from 'nestjs-holdfast/admin';
import type { SORTS } from './options.js';

type Compare = (a: LockSummary, b: LockSummary) => number;

/** One order of a list of keys. */
export interface Order {
  readonly compare: Compare;
  /** Which keys come first, where not all are shown. */
  readonly first: string;
}

const byKey: Compare = (a, b) => (a.key < b.key ? -1 : 1);

/** The longest held first; those that are not held last. */
const byHold: Compare = (a, b) => difference(sinceMs(a), sinceMs(b));

/** The first to end first, then those without an end, then those that are not held. */
const byEnd: Compare = (a, b) =>
  difference(Number(a.remainingMs === undefined), Number(b.remainingMs === undefined)) ||
  difference(a.remainingMs ?? 0, b.remainingMs ?? 0);

const sinceMs = ({ since }: LockSummary): number => since?.getTime() ?? Infinity;

/** Two infinite numbers are the same. */
const difference = (a: number, b: number): number => (a === b ? 0 : a - b);

export const ORDERS: Readonly<Record<(typeof SORTS)[number], Order>> = {
  waiting: {
    compare: (a, b) => b.waiting - a.waiting || byHold(a, b) || byKey(a, b),
    first: 'those with the longest lines',
  },
  held: { compare: (a, b) => byHold(a, b) || byKey(a, b), first: 'those held longest' },
  key: { compare: byKey, first: 'in the order of their names' },
  expires: { compare: (a, b) => byEnd(a, b) || byKey(a, b), first: 'those that end first' },
};
