import type { Random } from '../../faults/random.js';
import type { Operation, ProcessPlan } from '../scenario.js';
import { KNOWN_AFTER_MS } from './draw-operators.js';
import type { Features } from './features.js';

/** "A call that cannot get the key within about 10 s of trying gives up"; and each try may have to wait for the work of a holder. */
const GIVES_UP_AFTER_MS = 15_000;

/** The same processes; most of their calls replace the holder. */
export function withReplacing(
  processes: readonly ProcessPlan[],
  random: Random,
  { replacing }: Features,
): readonly ProcessPlan[] {
  if (!replacing) return processes;
  const replaceWaitMs = random.pick([0, 200, 1_000, 1_000]);
  // Calls that wait in line get the key first if they came first. Others do not know their process in its first moments.
  const share = random.pick([1, 1, 0.7]);
  const waitMs = GIVES_UP_AFTER_MS + 24 * replaceWaitMs;
  const replace = (operation: Operation): Operation => ({
    ...operation,
    ...(random.chance(0.5) && { stopsAfterMs: random.pick([1, 50, 150, 800, 2_000]) }),
    ...(random.chance(share)
      ? { replaceWaitMs, waitMs, how: random.pick(['acquire', 'run']) }
      : { pauseMs: operation.pauseMs + KNOWN_AFTER_MS }),
  });
  return processes.map((process) => ({
    ...process,
    callers: process.callers.map(({ startMs, operations }) => ({
      startMs,
      operations: operations.map(replace),
    })),
  }));
}
