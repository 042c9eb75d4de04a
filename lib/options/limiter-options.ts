import { count } from './checks.js';
import { required, type OneSchema, type OptionsOf } from './schema.js';
import { OTHER_WORDS, type Kind } from './unknown-option.js';

const OPTIONS = {
  /**
   * How many places there are, unless `setLimit` has set another number. A whole number from 1. All callers must give
   * the same one.
   */
  limit: required(count()),
};

/** Options of `locks.limiter`. */
export interface LimiterOptions extends OptionsOf<typeof OPTIONS>, OneSchema {}

const OF_A_CALL = "It belongs to a call: limiter.run({ wait: '1m' }, work).";

export const LIMITER = {
  called: 'limiter()',
  options: OPTIONS,
  elsewhere: {
    ...OTHER_WORDS,
    ...{ places: OF_A_CALL, wait: OF_A_CALL, ttl: OF_A_CALL, signal: OF_A_CALL },
  },
} satisfies Kind;
