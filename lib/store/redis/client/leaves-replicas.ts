import type { Clock } from '../../../time/clock.js';

/** A replica refuses every request, and a new connection may lead to another replica. */
const LEAVES_AGAIN_AFTER_MS = 1_000;

/** Leaves a master that was demoted at once, and after that at most once a second. */
export function leavesReplicas(clock: Clock): (error: Error) => boolean {
  let leftAt = -Infinity;
  return (error) => {
    // Redis before 7 puts the error of a command behind that of the script.
    if (!error.message.includes('READONLY')) return false;
    const now = clock.now().monotonicMs;
    if (now - leftAt < LEAVES_AGAIN_AFTER_MS) return false;
    leftAt = now;
    return true;
  };
}
