import { duration, tested, ttl } from '../options/checks.js';
import { optional, required, type OptionsOf } from '../options/schema.js';
import { OTHER_WORDS, type Kind } from '../options/unknown-option.js';
import type { Lead, LeadEnded } from './lead.js';

const isFunction = (given: unknown): boolean => typeof given === 'function';

/** Options of the lock of a leader. */
export const LEAD = {
  /**
   * How long a dead leader keeps the leadership: another instance is elected at most `ttl` + 150 ms later. At least 50 ms.
   *
   * @defaultValue the module's
   */
  ttl: optional(ttl),
  /**
   * After this time, the leader steps down if other instances wait, so that each of them leads in turn. At least 1 s.
   *
   * @defaultValue never
   */
  rotateEvery: optional(duration({ atLeastMs: 1_000 })),
};

const CALLBACKS = {
  /**
   * Called with the term when this instance is elected. The instance stays the leader after the function has returned.
   *
   * `signal` aborts when the term is over. If the function throws, the instance steps down, and is a candidate again
   * later.
   */
  onElected: required(tested<(lead: Lead) => unknown>('a function', isFunction)),
  /** Called when the term is over, for any reason: once for each call of `onElected`. */
  onLost: optional(tested<(ended: LeadEnded) => unknown>('a function', isFunction)),
};

const LEAD_CALL = { ...LEAD, ...CALLBACKS };

/** Options of `lead`. */
export interface LeadOptions extends OptionsOf<typeof LEAD>, OptionsOf<typeof CALLBACKS> {}

const ALWAYS = 'A candidate waits until it is elected, and the lease of a leader is renewed.';

export const LEAD_ELSEWHERE = {
  ...OTHER_WORDS,
  wait: ALWAYS,
  autoExtend: ALWAYS,
  mode: 'There is one leader.',
  places: "There is one leader. For several, use run() with 'limit'.",
  limit: "There is one leader. For several, use run() with 'limit'.",
};

export const LEAD_KIND: Kind<typeof LEAD_CALL> = {
  called: 'lead()',
  options: LEAD_CALL,
  elsewhere: LEAD_ELSEWHERE,
};
