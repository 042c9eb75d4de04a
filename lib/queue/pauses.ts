import { backOffMs, type BackOff } from '../time/back-off.js';
import type { Runtime } from '../time/runtime.js';
import type { AttemptOutcome } from './requests.js';

/** Where the store cannot tell us about releases, we look again this often at the least. */
export const POLL_MS = 500;
/** Where it can, too: the store may have lost the line (`FLUSHALL`, eviction, fail-over), and then nobody is called. */
const LOOK_AGAIN_MS = 5_000;

/** During an outage. */
const RETRY: BackOff = { firstMs: 50, longestMs: 1_000 };

/** The range of pauses when votes were split: random, or the same callers meet again. */
const CONTENDED: BackOff = { firstMs: 10, longestMs: 250 };

/** Nobody is sure to hold the lock: the store could not decide between several that asked at once. */
export const isContended = (outcome: AttemptOutcome): boolean =>
  outcome.status === 'held' && outcome.contended === true;

/** How long to pause after so many tries in a row that were contended. */
export const contendedPauseMs = (tries: number, runtime: Runtime): number =>
  runtime.random() * backOffMs(CONTENDED, tries);

/** How long to pause after so many failures in a row. */
export const outagePauseMs = (failures: number): number => backOffMs(RETRY, failures);

/** However sure a line is to be called: a place in one that is lost is taken again, with its ticket, before others have waited long. */
export const lookWithinMs = (ms: number, ttlMs = Infinity): number =>
  Math.min(ms, LOOK_AGAIN_MS, ttlMs / 3);
