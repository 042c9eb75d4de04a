import type { Grant } from '../../faults/grants.js';
import { overlaps, type Loss } from '../../faults/safety.js';
import { byKey } from '../../faults/grants.js';

/** For clocks that differ in speed, and for what is on its way. */
const SLACK_MS = 20;

/** Two who hold one key at once and exclude each other; and keys that were not kept taken for as long as `minHold` says. */
export function exclusionViolations(
  grants: readonly Grant[],
  losses: readonly Loss[],
): readonly string[] {
  return [...overlaps(grants, losses), ...shortHolds(grants, losses)];
}

/** "With `minHold` nobody else gets the keys before that time is over, counted from when the lock was granted." */
function shortHolds(grants: readonly Grant[], losses: readonly Loss[]): readonly string[] {
  const violations: string[] = [];
  for (const [key, ofKey] of byKey(grants)) {
    for (const grant of ofKey) {
      if (grant.minHoldMs === 0 || grant.mode !== 'exclusive') continue;
      const until = grant.grantedAt + grant.minHoldMs - SLACK_MS;
      const early = ofKey.find(({ grantedAt }) => grantedAt > grant.grantedAt && grantedAt < until);
      if (early === undefined) continue;
      const isForgiven = losses.some(
        (loss) =>
          (loss.keys?.includes(key) ?? true) &&
          loss.from < early.grantedAt &&
          loss.until > grant.grantedAt,
      );
      if (isForgiven) continue;
      const afterMs = (early.grantedAt - grant.grantedAt).toFixed(0);
      violations.push(
        `min-hold: key "${key}" was to be kept for ${grant.minHoldMs} ms for ${grant.name}, and ${early.name} had it after ${afterMs} ms`,
      );
    }
  }
  return violations;
}
