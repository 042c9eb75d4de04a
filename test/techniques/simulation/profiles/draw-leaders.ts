import type { Random } from '../../faults/random.js';
import type { LeadPlan, Operation, ProcessPlan, TermPlan } from '../scenario.js';
import type { Features } from './features.js';

/** A candidate waits until it is elected. */
const FOREVER_MS = 1_000_000_000;

/** The same processes, with candidates in most of them; and with nothing else in half of the worlds. */
export function withLeaders(
  processes: readonly ProcessPlan[],
  random: Random,
  features: Features,
): readonly ProcessPlan[] {
  if (!features.leaders) return processes;
  const names = random.sample(
    features.keys,
    Math.min(features.keys.length, random.pick([1, 1, 2])),
  );
  const isAlone = random.chance(0.5);
  const rotates = random.chance(0.5);
  const candidate = (): Operation => drawCandidate(random, features, { names, rotates });
  return processes.map((process) => ({
    ...process,
    callers: [
      ...Array.from({ length: random.pick([0, 1, 1, 1, 1, 2]) }, () => ({
        startMs: features.crowds ? 20 : random.between(0, 100),
        // Some stop, and stand again.
        operations: Array.from({ length: random.pick([1, 1, 1, 2]) }, candidate),
      })),
      ...(isAlone ? [] : process.callers),
    ],
  }));
}

function drawCandidate(
  random: Random,
  features: Features,
  { names, rotates }: { readonly names: readonly string[]; readonly rotates: boolean },
): Operation {
  const { ttlsMs, lengthMs } = features;
  const ttlMs = random.pick(ttlsMs);
  const rotateEveryMs = random.pick([1_000, 1_000, 2_500]);
  const lead: LeadPlan = {
    ...(rotates && random.chance(0.6) && { rotateEveryMs }),
    terms: Array.from({ length: random.between(1, 3) }, () => drawTerm(random, ttlMs, lengthMs)),
  };
  return {
    ...{ how: 'lead', mode: 'exclusive', keys: [random.pick(names)], ttlMs, lead },
    pauseMs: random.pick([0, 0, 20, lengthMs / 10]),
    waitMs: FOREVER_MS,
    holdMs: random.pick([0.3, 1, 1.5, 2]) * lengthMs,
  };
}

function drawTerm(random: Random, ttlMs: number, lengthMs: number): TermPlan {
  const work = random.pick(['returns', 'lasts', 'lasts', 'rejects'] as const);
  const afterMs = random.pick([0, 10, ttlMs / 2, 1_000, lengthMs / 4]);
  const how = random.pick([
    ...(['lead.stepDown', 'leadership.stepDown'] as const),
    // Only work that lasts can fail later.
    ...(work === 'returns' ? [] : (['fails'] as const)),
  ]);
  return {
    work,
    ...(random.chance(0.5) && { end: { afterMs, how } }),
    lingersMs: random.pick([0, 0, 1, 50, 2 * ttlMs]),
  };
}
