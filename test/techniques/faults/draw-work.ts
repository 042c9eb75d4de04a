import type { Random } from './random.js';
import type { Call, Work } from './recorded-calls.js';

/** What callers do with the locks that they have. */
export interface Habits {
  /** With this probability a lock goes to somebody else. */
  readonly detaches: number;
  readonly ttlsMs: readonly number[];
}

/** Draws what becomes of a lock while it is held. One with `minHold` stays with its holder. */
export function drawWork(
  random: Random,
  { how, options, holdMs }: Pick<Call, 'how' | 'options' | 'holdMs'>,
  habits: Habits,
): Work {
  if (how === 'once' || options.minHold !== undefined) return { holdMs };
  const isDetached = how !== 'run' && random.chance(habits.detaches);
  return {
    holdMs,
    ...(isDetached && { detach: drawDetach(random, holdMs, habits) }),
  };
}

const SHORT_TTL_MS = 150;

function drawDetach(random: Random, holdMs: number, habits: Habits): Work['detach'] {
  // If the lock is attached too late, its keys were taken for nothing until its time was over.
  const isLate = random.chance(0.2);
  const ttlMs = isLate ? SHORT_TTL_MS : random.pick(habits.ttlsMs);
  const drawMs = (): number => random.pick(isLate ? [SHORT_TTL_MS + 150] : [0, 5, 50]);
  // A queue may deliver a job twice.
  const afterMs = random.chance(0.3) ? [drawMs(), drawMs()] : [drawMs()];
  const isDetached = random.chance(0.2);
  const work: Work = {
    holdMs: random.between(0, holdMs),
    ...(isDetached && { detach: drawDetach(random, holdMs, habits) }),
  };
  return { ttlMs, afterMs, work };
}
