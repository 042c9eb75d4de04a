import type { Random } from '../../faults/random.js';
import type { Mode, ModeChange, Operation, ProcessPlan } from '../scenario.js';
import type { Features } from './features.js';

/** The same processes; some of their locks change their mode while they are held, and some who would read may write. */
export function withModeChanges(
  processes: readonly ProcessPlan[],
  random: Random,
  features: Features,
): readonly ProcessPlan[] {
  if (!features.modeChanges) return processes;
  return processes.map((process) => ({
    ...process,
    callers: process.callers.map((caller) => ({
      ...caller,
      operations: caller.operations.map((operation) => changing(operation, random, features)),
    })),
  }));
}

/** Keys that stay taken for `minHold` do so in the mode of their end: nothing more exact is promised. */
const isPlain = ({ how, minHoldMs, release }: Operation): boolean =>
  how !== 'once' && minHoldMs === undefined && release === undefined;

function changing(operation: Operation, random: Random, features: Features): Operation {
  // Upgrades are for one Redis.
  const upgrades = features.serverCount === 1;
  if (!isPlain(operation)) return operation;
  const mode =
    operation.mode === 'shared' && upgrades && random.chance(0.5) ? 'upgradeable' : operation.mode;
  const changes = drawChanges(mode, { random, features, operation });
  return { ...operation, mode, ...(changes.length > 0 && { changes }) };
}

interface Source {
  readonly random: Random;
  readonly features: Features;
  readonly operation: Operation;
}

function drawChanges(first: Mode, source: Source): readonly ModeChange[] {
  const { random } = source;
  const changes: ModeChange[] = [];
  let mode = first;
  for (let left = random.pick([0, 1, 1, 2, 3, 4]); left > 0; left -= 1) {
    const change = drawChange(mode, source);
    if (change === undefined) break;
    changes.push(change);
    mode = change.to;
  }
  return changes;
}

function drawChange(mode: Mode, source: Source): ModeChange | undefined {
  const { random, features, operation } = source;
  const upgrades = features.serverCount === 1;
  const afterMs = random.pick([0, 1, 10, operation.holdMs / 3, operation.ttlMs / 2]);
  switch (mode) {
    case 'exclusive':
      return { afterMs, to: upgrades && random.chance(0.6) ? 'upgradeable' : 'shared' };
    case 'upgradeable':
      return random.chance(0.85)
        ? { afterMs, to: 'exclusive', ...drawWait(source) }
        : { afterMs, to: 'shared' };
    case 'shared':
      // To be refused.
      return upgrades && random.chance(0.1)
        ? { afterMs, to: 'exclusive', ...drawWait(source) }
        : undefined;
    default:
      return undefined;
  }
}

const drawWait = ({ random, features }: Source): Pick<ModeChange, 'waitMs' | 'patienceMs'> => ({
  waitMs: features.nobodyWaits ? 0 : random.pick([0, 50, 1_000, 10_000]),
  ...(random.chance(0.25) && { patienceMs: random.between(0, 300) }),
});
