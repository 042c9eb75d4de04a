import { backOffMs, type BackOff } from '../time/back-off.js';
import type { Runtime } from '../time/runtime.js';
import type { AttemptOutcome } from './requests.js';

/** If the store cannot notify this process of releases, a line asks at least this often. */
export const POLL_MS = 500;
/**
 * If it can, a line asks this often too: the store may have lost the line (`FLUSHALL`, eviction, fail-over), and then
 * it calls no process.
 */
const LOOK_AGAIN_MS = 5_000;

/** During an outage. */
const RETRY: BackOff = { firstMs: 50, longestMs: 1_000 };

/** The range of pauses when votes were split: random, or the same callers meet again. */
const CONTENDED: BackOff = { firstMs: 10, longestMs: 250 };

/** No caller is sure to hold the lock: the store could not decide between several that asked at once. */
export const isContended = (outcome: AttemptOutcome): boolean =>
  'contended' in outcome && outcome.contended === true;

/** The pause after this many contended tries in a row. */
export const contendedPauseMs = (tries: number, runtime: Runtime): number =>
  runtime.random() * backOffMs(CONTENDED, tries);

/** The pause after this many failures in a row. */
export const outagePauseMs = (failures: number): number => backOffMs(RETRY, failures);

/** However sure a line is to be called: a place in one that is lost is taken again, with its ticket, before others have waited long. */
export const lookWithinMs = (ms: number, ttlMs = Infinity): number =>
  Math.min(ms, LOOK_AGAIN_MS, ttlMs / 3);
