import { duration, tested, ttl } from '../options/checks.js';
import { optional, required, type OptionsOf } from '../options/schema.js';
import { OTHER_WORDS, type Kind } from '../options/unknown-option.js';
import type { Lead, LeadEnded } from './lead.js';

const isFunction = (given: unknown): boolean => typeof given === 'function';

/** Options of the lock of a leader. */
export const LEAD = {
  /**
   * How long the lead of a leader that died stays taken: another one is elected within this and 150 ms. At least 50 ms.
   *
   * @defaultValue the module's
   */
  ttl: optional(ttl),
  /**
   * After this time the leader steps down if others wait: each instance has its turn. At least 1 s.
   *
   * @defaultValue never
   */
  rotateEvery: optional(duration(1_000)),
};

const CALLBACKS = {
  /**
   * Called with its term when this instance is elected. The lead continues when it returns; `signal` aborts when the
   * lead is over. When it throws, the instance steps down and stands for election again later.
   */
  onElected: required(tested<(lead: Lead) => unknown>('a function', isFunction)),
  /** Called when the lead is over, for any reason. */
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
