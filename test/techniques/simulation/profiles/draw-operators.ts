import type { Random } from '../../faults/random.js';
import type { CallerPlan, Fault, FaultKind, ProcessPlan, Scenario } from '../scenario.js';
import { drawFaults } from './draw-faults.js';
import type { Features } from './features.js';

const RELEASES: readonly FaultKind[] = [
  'force-released',
  'seen-released',
  'seen-released',
  'instance-released',
];

/** By then the others know a process that has started, and can notify it. */
export const KNOWN_AFTER_MS = 300;

/** The same processes. Where operators intervene, their callers begin when the others know them. */
export const withKnown = (
  processes: readonly ProcessPlan[],
  { operators }: Features,
): readonly ProcessPlan[] =>
  !operators
    ? processes
    : processes.map((process) => ({
        ...process,
        callers: process.callers.map(({ startMs, operations }) => ({
          startMs: startMs + KNOWN_AFTER_MS,
          operations,
        })),
      }));

/** The same faults, and operators who end locks and forget work. Half of these worlds have no other fault. */
export function withOperators(
  drawn: readonly Fault[],
  random: Random,
  features: Features,
  processes: number,
): readonly Fault[] {
  if (!features.operators) return drawn;
  const faults: readonly FaultKind[] =
    features.onceWork === 'none' ? RELEASES : [...RELEASES, 'work-forgotten', 'work-forgotten'];
  // Some come while the callers of a process take turns, soon after they have asked.
  const soon = (): number => random.between(20, 150);
  const interventions = drawFaults(random, { ...features, faults }, processes).map((fault) => ({
    ...fault,
    atMs: KNOWN_AFTER_MS + (random.chance(0.4) ? soon() : fault.atMs),
  }));
  const others = random.chance(0.5) ? [] : drawn;
  return [...others, ...interventions].toSorted((one, other) => one.atMs - other.atMs);
}

/** Turns go on for so long at the most, before other processes have theirs. */
const TENURE_MS = 20;

/**
 * The same world; or, in some worlds, one in which an operator acts while the callers of a process take turns: the lock that was seen is that of
 * another caller by then.
 */
export function withTurnsSeen(scenario: Scenario, random: Random): Scenario {
  if (scenario.profile !== 'operator' || !random.chance(0.1)) return scenario;
  const key = 'a';
  const caller = (): CallerPlan => ({
    startMs: KNOWN_AFTER_MS,
    operations: [
      {
        ...{ how: random.pick(['acquire', 'run']), keys: [key], mode: 'exclusive', pauseMs: 0 },
        ...{ ttlMs: 1_000, waitMs: 10_000, holdMs: random.between(1, 6) },
      },
    ],
  });
  const fault = (): Fault => ({
    ...{ kind: 'seen-released', process: random.between(0, 1), key },
    atMs: KNOWN_AFTER_MS + random.between(20, 20 + TENURE_MS),
    afterMs: random.pick([0, 1, 2]),
  });
  const process = (callers: readonly CallerPlan[]): ProcessPlan => ({
    ...{ clock: { skewMs: 0, drift: 0 }, startMs: 0, handoff: true, callers },
  });
  return {
    ...scenario,
    network: { latencyUs: 50, jitterUs: random.pick([0, 50]) },
    processes: [process(Array.from({ length: 8 }, caller)), process([caller(), caller()])],
    faults: [fault(), fault()].toSorted((one, other) => one.atMs - other.atMs),
  };
}
