import type { Random } from '../../faults/random.js';
import type { DetachPlan, Operation, ProcessPlan } from '../scenario.js';
import type { Features } from './features.js';

/** The same processes; some of their locks go to another one at their end. */
export function withDetaching(
  processes: readonly ProcessPlan[],
  random: Random,
  features: Features,
): readonly ProcessPlan[] {
  if (!features.detaching) return processes;
  const draw = (): DetachPlan => {
    const ttls = [...features.ttlsMs, 100, 1_000, 4_000];
    // Older data are up to a second old.
    const gapsMs = features.guardMs > 0 ? [10, 1_000, 2_000] : [0, 10, 200, 2_000];
    return {
      ttlMs: random.pick(
        ttls.filter((ttlMs) => features.guardMs === 0 || ttlMs <= features.guardMs),
      ),
      to: random.between(0, processes.length - 1),
      // A queue may deliver a job twice, and does if it was set back with the data.
      afterMs: random.chance(features.guardMs > 0 ? 0.8 : 0.3)
        ? [random.pick(gapsMs), random.pick(gapsMs)]
        : [random.pick(gapsMs)],
      holdMs: random.pick([0, 10, 200, 2 * Math.max(...features.ttlsMs)]),
    };
  };
  return processes.map((process) => ({
    ...process,
    callers: process.callers.map((caller) => ({
      ...caller,
      operations: caller.operations.map((operation) =>
        goes(operation) && random.chance(0.4) ? { ...operation, detach: draw() } : operation,
      ),
    })),
  }));
}

/** A section releases its lock itself. What stays taken for a time is not looked at more closely. */
const goes = ({ how, minHoldMs, release }: Operation): boolean =>
  (how === 'acquire' || how === 'tryAcquire') && minHoldMs === undefined && release === undefined;
