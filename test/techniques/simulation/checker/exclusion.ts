import { byKey, type Grant } from '../../faults/grants.js';
import { overlaps } from '../../faults/safety.js';
import type { Facts } from './facts.js';
import { withLimits } from './limits.js';
import { losesData } from './losses.js';

/** For clocks that differ in speed, by 1 % of the longest TTL (4 s) at the most, and for what is on its way. */
const SLACK_MS = 40;

/** Two who hold one key at once and exclude each other; and keys that were not kept taken for as long as `minHold` says. */
export function exclusionViolations(facts: Facts): readonly string[] {
  const { losses, done, killed } = facts;
  // "The limit that was set" is data, too: the guard keeps leases only.
  const areKept = losses.length === 0 && !done.some(({ fault }) => losesData(fault));
  const grants = withLimits(facts.grants, facts.events, areKept);
  // "A store that cannot be reached is told when it answers again, and keeps the key until the end of its TTL meanwhile."
  const isReached = done.every(({ fault }) => REACHES_THE_STORE.has(fault.kind));
  const told = isReached ? grants.filter(({ client }) => !killed.has(client)) : [];
  return [...overlaps(grants, losses), ...shortHolds(grants, told)];
}

const REACHES_THE_STORE = new Set(['process-killed', 'process-shut-down', 'line-lost']);

/** "With `minHold` nobody else gets the keys before that time is over, counted from when the lock was granted." */
function shortHolds(grants: readonly Grant[], told: readonly Grant[]): readonly string[] {
  const violations: string[] = [];
  for (const [key, ofKey] of byKey(grants)) {
    for (const grant of ofKey) {
      if (grant.minHoldMs === 0 || grant.mode !== 'exclusive' || !told.includes(grant)) continue;
      const until = grant.grantedAt + grant.minHoldMs - SLACK_MS;
      const early = ofKey.find(({ grantedAt }) => grantedAt > grant.grantedAt && grantedAt < until);
      if (early === undefined) continue;
      const afterMs = (early.grantedAt - grant.grantedAt).toFixed(0);
      violations.push(
        `min-hold: key "${key}" was to be kept for ${grant.minHoldMs} ms for ${grant.name}, and ${early.name} had it after ${afterMs} ms`,
      );
    }
  }
  return violations;
}
