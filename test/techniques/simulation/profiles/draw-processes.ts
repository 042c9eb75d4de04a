import type { Random } from '../../faults/random.js';
import type { CallerPlan, How, Mode, OnceOperation, Operation, ProcessPlan } from '../scenario.js';
import type { ClockPlan } from '../world/clock.js';
import type { Features } from './features.js';

const HOWS: readonly How[] = ['acquire', 'acquire', 'run', 'run', 'tryAcquire', 'tryRun'];

export function drawProcesses(
  random: Random,
  features: Features,
  clock: () => ClockPlan,
): readonly ProcessPlan[] {
  const { handoff, crowds, size } = features;
  return Array.from({ length: random.pick(size.processes) }, () => ({
    clock: clock(),
    startMs: crowds ? 0 : random.between(0, 20),
    handoff,
    callers: Array.from({ length: random.pick(size.callers) }, () => drawCaller(random, features)),
  }));
}

function drawCaller(random: Random, features: Features): CallerPlan {
  const { crowds, size } = features;
  return {
    startMs: crowds ? 20 : random.between(0, 100),
    operations: Array.from({ length: random.between(1, size.operations) }, (_, index) =>
      drawOperation(random, features, index === 0),
    ),
  };
}

function drawOperation(random: Random, features: Features, isFirst: boolean): Operation {
  const { keys, modes, severalKeys, nobodyWaits, shortHolds, ttlsMs, onceWork } = features;
  const isOnce =
    onceWork === 'only' ? random.chance(0.8) : onceWork === 'some' && random.chance(0.4);
  const ttlMs = random.pick(ttlsMs);
  const mode = isOnce ? 'exclusive' : random.pick(modes);
  const count = severalKeys && !isOnce ? random.between(1, keys.length) : 1;
  const holdMs = random.pick([
    0,
    1,
    10,
    50,
    ...(shortHolds ? [] : [0.5, 2, 3].map((times) => times * ttlMs)),
  ]);
  return {
    ...{ how: isOnce ? 'once' : random.pick(HOWS), ttlMs, holdMs },
    pauseMs: drawPause(random, features, isFirst),
    keys: random.sample(keys, count),
    mode,
    ...drawPlaces(random, mode, features),
    waitMs: nobodyWaits ? 0 : random.pick([0, 50, 1_000, 10_000, 10_000]),
    ...(isOnce ? { once: drawOnce(random) } : drawTerms(random, features, { ttlMs, holdMs })),
    ...drawManners(random, features),
  };
}

const LEAST_LIMIT = 2;

/** Half of those who want a place of a limit want several. */
function drawPlaces(random: Random, mode: Mode, { limitChanges }: Features): Partial<Operation> {
  const limit = Number(/^limit:(\d+)$/.exec(mode)?.[1] ?? 1);
  if (limit === 1) return {};
  // Whoever wants more than the limit that is set waits until another one is.
  const most = limitChanges ? LEAST_LIMIT : limit;
  return {
    ...(random.chance(0.5) && { places: random.between(2, most) }),
    ...(limitChanges && random.chance(0.4) && { setLimit: random.pick([LEAST_LIMIT, 4]) }),
  };
}

/** Who does not wait in a crowd asks again long after the others, or all would be done before anything happens. */
function drawPause(random: Random, features: Features, isFirst: boolean): number {
  const { crowds, nobodyWaits, lengthMs } = features;
  if (!crowds) return random.pick([0, 0, 1, 20, lengthMs / 10]);
  return nobodyWaits && !isFirst ? random.pick([0.8, 1]) * lengthMs : 0;
}

/** How long it is held, and whether it is. */
function drawTerms(
  random: Random,
  features: Features,
  { ttlMs, holdMs }: { readonly ttlMs: number; readonly holdMs: number },
): Partial<Operation> {
  const { minHolds, holdLimits, extensions, fixedLeases, nesting } = features;
  return {
    ...(fixedLeases && random.chance(0.4) && { autoExtend: false as const }),
    ...(minHolds && random.chance(0.3) && { minHoldMs: random.between(50, ttlMs) }),
    ...(minHolds && random.chance(0.1) && { release: 'on-expiry' as const }),
    ...(holdLimits && random.chance(0.3) && { maxHoldMs: random.between(50, 2 * ttlMs) }),
    // A TTL that is shorter than `minHold` is refused.
    ...(extensions &&
      !minHolds &&
      random.chance(0.4) && {
        extend: {
          afterMs: random.between(0, Math.ceil(holdMs)),
          ttlMs: random.pick(features.ttlsMs),
        },
      }),
    ...(nesting && random.chance(0.4) && { inner: drawInner(random, features) }),
  };
}

function drawManners(random: Random, { impatience, blocks }: Features): Partial<Operation> {
  return {
    ...(impatience && random.chance(0.3) && { patienceMs: random.between(0, 300) }),
    ...(blocks && random.chance(0.2) && { blocksMs: random.pick([20, 200, 2_000]) }),
    ...(random.chance(0.3) && { ignoresSignal: true as const }),
  };
}

function drawInner(random: Random, features: Features): Operation {
  return {
    ...{ how: 'run', pauseMs: 0, mode: 'exclusive' },
    keys: [random.pick(features.keys)],
    ttlMs: random.pick(features.ttlsMs),
    waitMs: random.pick([0, 200, 2_000]),
    holdMs: random.pick([0, 5, 50]),
  };
}

const drawOnce = (random: Random): OnceOperation => ({
  attempts: 3,
  keepDoneMs: random.pick([60_000, 600_000]),
  keepValue: random.chance(0.7),
  ends: random.pick(['returns', 'returns', 'returns', 'throws', 'throws', 'gives up']),
});
