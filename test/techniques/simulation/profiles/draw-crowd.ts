import type { Random } from '../../faults/random.js';
import type { CallerPlan, Operation, ProcessPlan } from '../scenario.js';
import type { Features } from './features.js';

/** How long their holder has the key: all of them stand in line by then. */
const HELD_MS = 400;

/** The number of processes of a crowd that stay. They are served, although the others leave. */
const PATIENT = 2;

/**
 * The same processes; or, in a few worlds, a crowd of processes that wait for one key and give up at the very moment of its release, beside
 * few that do not.
 */
export function withCrowd(
  processes: readonly ProcessPlan[],
  random: Random,
  { size, serverCount, guardMs, modes, leaders, onceWork }: Features,
): readonly ProcessPlan[] {
  const isPlain = serverCount === 1 && guardMs === 0 && modes.length === 1 && !leaders;
  if (!size.hasMany || !random.chance(0.012) || !isPlain || onceWork !== 'none') return processes;
  const operation = (times: Pick<Operation, 'waitMs' | 'holdMs' | 'patienceMs'>): Operation => ({
    ...{ how: random.pick(['acquire', 'run']), keys: ['a'], mode: 'exclusive', pauseMs: 0 },
    ...{ ttlMs: 4_000, ...times },
  });
  const process = (caller: CallerPlan): ProcessPlan => ({
    clock: { skewMs: 0, drift: 0 },
    startMs: 0,
    handoff: random.chance(0.5),
    callers: [caller],
  });
  const startMs = 20;
  const holder = process({ startMs, operations: [operation({ waitMs: 0, holdMs: HELD_MS })] });
  const leaver = (): ProcessPlan => {
    const comesAfterMs = random.between(20, 150);
    const patienceMs = HELD_MS - comesAfterMs + random.pick([-1, 0, 0, 0, 1, 2]);
    return process({
      startMs: startMs + comesAfterMs,
      operations: [operation({ waitMs: 10_000, holdMs: random.pick([0, 5]), patienceMs })],
    });
  };
  const patient = (): ProcessPlan =>
    process({
      startMs: startMs + random.between(20, 300),
      operations: [operation({ waitMs: 10_000, holdMs: 5 })],
    });
  return [
    holder,
    ...Array.from({ length: random.pick([30, 100, 250]) }, leaver),
    ...Array.from({ length: PATIENT }, patient),
  ];
}
