import type { ModeChange } from './holding.js';
import type { Random } from './random.js';
import type { Call, Work } from './recorded-calls.js';

/** What callers do with the locks that they have. */
export interface Habits {
  /** Locks are upgraded on one Redis only. */
  readonly canUpgrade: boolean;
  /** With this probability a lock changes its mode. */
  readonly changes: number;
  /** With this probability it goes to somebody else. */
  readonly detaches: number;
  readonly ttlsMs: readonly number[];
  readonly longestWaitMs: number;
}

/**
 * Draws what becomes of a lock while it is held. One with `minHold` goes on as it is: its keys stay taken in the mode of its end, and nothing
 * more exact is promised.
 */
export function drawWork(
  random: Random,
  { how, options, holdMs }: Pick<Call, 'how' | 'options' | 'holdMs'>,
  habits: Habits,
): Work {
  const { mode = 'exclusive', limit, minHold } = options;
  if (how === 'once' || minHold !== undefined) return { holdMs };
  const changes =
    limit === undefined && random.chance(habits.changes)
      ? drawChanges(random, mode, { holdMs, ...habits })
      : [];
  const isDetached = how !== 'run' && random.chance(habits.detaches);
  return {
    holdMs,
    ...(changes.length > 0 && { changes }),
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

type Mode = ModeChange['to'];

type Source = Habits & { readonly holdMs: number };

function drawChanges(random: Random, first: Mode, source: Source): readonly ModeChange[] {
  const changes: ModeChange[] = [];
  let mode = first;
  for (let left = random.between(1, 3); left > 0; left -= 1) {
    const change = drawChange(random, mode, source);
    if (change === undefined) break;
    changes.push(change);
    mode = change.to;
  }
  return changes;
}

function drawChange(random: Random, mode: Mode, source: Source): ModeChange | undefined {
  const { canUpgrade, holdMs } = source;
  const afterMs = random.between(0, Math.ceil(holdMs / 2));
  switch (mode) {
    case 'exclusive':
      return { afterMs, to: canUpgrade && random.chance(0.6) ? 'upgradeable' : 'shared' };
    case 'upgradeable':
      return random.chance(0.85)
        ? { afterMs, to: 'exclusive', ...drawWait(random, source) }
        : { afterMs, to: 'shared' };
    case 'shared':
      // To be refused.
      return random.chance(0.3)
        ? { afterMs, to: 'exclusive', ...drawWait(random, source) }
        : undefined;
  }
}

const drawWait = (
  random: Random,
  { longestWaitMs }: Source,
): Pick<ModeChange, 'waitMs' | 'patienceMs'> => ({
  waitMs: random.pick([0, 50, longestWaitMs, longestWaitMs]),
  ...(random.chance(0.25) && { patienceMs: random.between(0, 200) }),
});
