import type { Random } from '../../faults/random.js';
import type { CallerPlan, Operation, ProcessPlan } from '../scenario.js';
import type { Features } from './features.js';

/** The name of a job, and when it was scheduled. */
export const JOBS = ['job:1', 'job:2', 'job:3'] as const;

/** When the first run is due. */
const FIRST_MS = 300;

/** The processes of a deployment, each of which starts the same job at the same times, a little early or late. */
export function withJobs(
  processes: readonly ProcessPlan[],
  random: Random,
  { jobs, ttlsMs }: Features,
): readonly ProcessPlan[] {
  if (!jobs) return processes;
  const pauseMs = random.pick([500, 1_000, 2_000]);
  const minHoldMs = Math.ceil(pauseMs * random.pick([0.5, 0.9, 1]));
  const ttlMs = random.pick(ttlsMs);
  const atMost = random.pick([{}, { maxHoldMs: pauseMs }, { maxHoldMs: Math.ceil(pauseMs / 3) }]);
  const run = (key: string): Operation => ({
    ...{ how: 'tryRun', keys: [key], mode: 'exclusive', pauseMs: 0, waitMs: 0, isJob: true },
    ...{ ttlMs, minHoldMs, ...atMost },
    holdMs: random.pick([0, 3, 3, 50, Math.ceil(pauseMs / 2), Math.ceil(1.2 * pauseMs)]),
    ...(random.chance(0.3) && { ignoresSignal: true as const }),
  });
  const job = (key: string, index: number, clockMs: number): CallerPlan => {
    // Later than `atLeast`, it runs again.
    const lateMs = random.pick([
      0,
      0,
      5,
      30,
      200,
      0.5 * minHoldMs,
      0.8 * minHoldMs,
      1.5 * minHoldMs,
    ]);
    return {
      startMs: Math.max(0, Math.round(FIRST_MS + index * pauseMs + clockMs + lateMs)),
      operations: [run(key)],
    };
  };
  return processes.map((process) => {
    const clockMs = random.pick([0, 0, random.between(-250, 250)]);
    return {
      ...process,
      startMs: 0,
      callers: JOBS.map((key, index) => job(key, index, clockMs)),
    };
  });
}
