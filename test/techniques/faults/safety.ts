/** Whether holders excluded each other, and what their fencing tokens say. It knows nothing of the library. */
import { byKey, type Grant, wasSeen } from './grants.js';

/** The store lost data: for a time, two who exclude each other may hold what was granted before (docs/internals/promises.md). */
export interface Loss {
  readonly from: number;
  /** By then every holder knows, or its lease is over. */
  readonly until: number;
  /** Default: all. */
  readonly keys?: readonly string[] | undefined;
  /** What was not lost, so that the other one should not have been granted; default: nothing. */
  readonly survives?: (grant: Grant, other: Grant) => boolean;
}

/** Two holders of one key at the same moment who exclude each other. */
export function overlaps(
  grants: readonly Grant[],
  losses: readonly Loss[] = [],
): readonly string[] {
  const violations: string[] = [];
  for (const [key, ofKey] of byKey(grants)) {
    let holding: Grant[] = [];
    for (const grant of ofKey.filter(wasSeen).sort((a, b) => a.from - b.from)) {
      holding = holding.filter(({ to }) => to >= grant.from);
      // The store has forgotten the others: they take no place from it.
      const known = holding.filter(
        (other) => !isForgiven(losses, key, [other, grant], Math.min(other.to, grant.to)),
      );
      for (const other of excludedBy(grant, known)) {
        const forMs = Math.min(other.to, grant.to) - grant.from;
        violations.push(
          `overlap: key "${key}" was held by ${other.name} and ${grant.name} at once, from ${grant.from.toFixed(1)} on for ${forMs.toFixed(1)} ms`,
        );
      }
      holding.push(grant);
    }
  }
  return violations;
}

/** Those among the holders who should have kept this one out. */
function excludedBy(grant: Grant, holding: readonly Grant[]): readonly Grant[] {
  const fellows = holding.filter((other) => areOfOnePhase(grant, other));
  // Whoever came last of them was let in by the limit that was in force then.
  const limit = Math.max(...[grant, ...fellows].map(limitOf));
  const inUse = fellows.reduce((sum, { places }) => sum + places, 0);
  return inUse + grant.places > limit
    ? holding
    : holding.filter((other) => !areOfOnePhase(grant, other));
}

const limitOf = ({ mode, mostPlaces }: Grant): number =>
  mostPlaces ?? Number(/^limit:(\d+)$/.exec(mode)?.[1] ?? Infinity);

const isLimited = ({ mode }: Grant): boolean => mode.startsWith('limit:');

/** Whether they have one fencing token if they hold a key together. All limits are one mode. */
const areOfOnePhase = (one: Grant, other: Grant): boolean =>
  (reads(one) && reads(other)) || (isLimited(one) && isLimited(other));

const reads = ({ mode }: Grant): boolean => mode === 'shared';

/** One of them may have been granted it before it was forgotten, and may believe to hold it for as long as that took. */
function isForgiven(
  losses: readonly Loss[],
  key: string,
  pair: readonly [earlier: Grant, later: Grant],
  overlapEnds: number,
): boolean {
  return losses.some(
    ({ from, until, keys, survives }) =>
      (keys?.includes(key) ?? true) &&
      survives?.(...pair) !== true &&
      overlapEnds >= from &&
      overlapEnds <= until &&
      pair.some(({ askedAt }) => askedAt <= until),
  );
}

/** Fencing tokens that were given twice, or that do not grow from a holder to one whom it excludes. */
export function wrongTokens(grants: readonly Grant[]): readonly string[] {
  const violations: string[] = [];
  for (const [key, ofKey] of byKey(grants)) {
    const owners = new Map<number, Grant>();
    for (const grant of ofKey) {
      const owner = owners.get(grant.fencingToken);
      owners.set(grant.fencingToken, grant);
      if (owner === undefined || areOfOnePhase(grant, owner)) continue;
      if (goesOn(owner, grant)) continue;
      violations.push(
        `fencing: token ${grant.fencingToken} of key "${key}" was given to ${owner.name} and ${grant.name}`,
      );
    }
    violations.push(...fallenTokens(key, ofKey));
  }
  return violations;
}

function fallenTokens(key: string, ofKey: readonly Grant[]): readonly string[] {
  const violations: string[] = [];
  const seen = ofKey.filter(wasSeen);
  const ended = [...seen].sort((a, b) => a.to - b.to);
  /** Of each mode, the largest among those that were over. */
  const highest = new Map<string, Grant>();
  for (const grant of seen.sort((a, b) => a.from - b.from)) {
    while (ended[0] !== undefined && ended[0].to < grant.from) {
      const before = ended.shift()!;
      const top = highest.get(before.mode);
      if (top === undefined || before.fencingToken > top.fencingToken)
        highest.set(before.mode, before);
    }
    for (const before of highest.values()) {
      if (areOfOnePhase(grant, before) || before.fencingToken < grant.fencingToken) continue;
      if (goesOn(before, grant)) continue;
      violations.push(
        `fencing: key "${key}" went from ${before.name} to ${grant.name}, and its token from ${before.fencingToken} to ${grant.fencingToken}`,
      );
    }
  }
  return violations;
}

/** "`locks.attach(text)` continues the lock", with its token. */
const goesOn = (before: Grant, grant: Grant): boolean =>
  before.lease !== undefined &&
  before.lease === grant.lease &&
  before.fencingToken === grant.fencingToken;

/**
 * "A turn under a lost lease": its number is less than the µs since the grant to its process, which was before the loss. A caller that was
 * granted the key since has a larger token, so the resource refuses the turn.
 */
export const isTurnOfLostLease = (
  turn: Grant,
  grants: readonly Grant[],
  losses: readonly Loss[],
): boolean =>
  losses.some(
    ({ from }) =>
      from < turn.grantedAt &&
      grants.some(
        ({ client, keys, fencingToken, askedAt }) =>
          askedAt <= from &&
          client === turn.client &&
          keys.some((key) => turn.keys.includes(key)) &&
          fencingToken < turn.fencingToken &&
          turn.fencingToken - fencingToken < (turn.grantedAt - askedAt) * 1_000,
      ),
  );

/** Whether two that hold a key together may have different tokens. */
type MayDiffer = (smaller: Grant, larger: Grant) => boolean;

/**
 * Holders of one key have one token. A holder of several keys may have a larger one, and so may every one that joins after data were lost.
 */
export function tokensTogether(
  grants: readonly Grant[],
  losses: readonly Loss[],
  mayDiffer: MayDiffer = () => false,
): readonly string[] {
  const violations: string[] = [];
  for (const [key, ofKey] of byKey(grants)) {
    const together = ofKey.filter(
      (grant) => grant.mode !== 'exclusive' && grant.keys.length === 1 && wasSeen(grant),
    );
    let holding: Grant[] = [];
    for (const grant of together.sort((a, b) => a.from - b.from)) {
      holding = holding.filter(({ to }) => to >= grant.from);
      for (const other of holding) {
        const isHarmed = losses.some(({ from, until }) => from < grant.to && until > other.from);
        const isSame = other.fencingToken === grant.fencingToken;
        if (!areOfOnePhase(grant, other) || isSame || isHarmed) continue;
        const isSmaller = grant.fencingToken < other.fencingToken;
        const [smaller, larger] = isSmaller ? [grant, other] : [other, grant];
        if (mayDiffer(smaller, larger)) continue;
        violations.push(
          `fencing: ${other.name} and ${grant.name} held key "${key}" together, with the tokens ${other.fencingToken} and ${grant.fencingToken}`,
        );
      }
      holding.push(grant);
    }
  }
  return violations;
}

/** Tokens are numbers of a clock: one that is far ahead of it would be larger than those after a loss of data. */
export function tokensAhead(grants: readonly Grant[], mostMs: number): readonly string[] {
  const ahead = grants.filter(({ aheadMs }) => aheadMs > mostMs);
  const [first] = ahead;
  if (first === undefined) return [];
  const farthest = Math.max(...ahead.map(({ aheadMs }) => aheadMs));
  return [
    `fencing: ${ahead.length} tokens were ahead of the clock by more than ${mostMs} ms, the first of ${first.name}, by up to ${farthest.toFixed(0)} ms`,
  ];
}
