import type { Random } from '../../faults/random.js';
import type { Fault, FaultKind } from '../scenario.js';
import { BOTH } from '../world/link.js';
import type { Features } from './features.js';

const DATA = [
  { data: 'kept' },
  { data: 'lost' },
  { data: 'older', missingMs: 50 },
  { data: 'older', missingMs: 1_000 },
] as const;

/** A lock that was detached is seldom attached in the last few ms. */
const OLD_DATA = [{ data: 'older', missingMs: 1_000 }] as const;

const DURATIONS_MS = [5, 50, 200, 1_000, 3_000] as const;

/** From what an operator sees to what an operator does. */
const THINKS_MS = [0, 2, 20, 200, 1_000] as const;

export function drawFaults(
  random: Random,
  { faults, mostFaults, lengthMs, serverCount, keys, detaching, guardMs }: Features,
  processes: number,
): readonly Fault[] {
  if (faults.length === 0) return [];
  const draw = (): Fault => {
    const atMs = random.between(100, lengthMs);
    const [process, server] = [
      random.between(0, processes - 1),
      random.between(0, serverCount - 1),
    ];
    const forMs = random.pick(DURATIONS_MS);
    return {
      atMs,
      ...ofKind(random, random.pick(faults), {
        ...{ process, server, forMs, key: random.pick(keys) },
        data: detaching && guardMs > 0 ? OLD_DATA : DATA,
      }),
    };
  };
  const drawn = Array.from({ length: random.between(1, mostFaults) }, draw);
  return drawn.sort((a, b) => a.atMs - b.atMs);
}

interface Target {
  readonly process: number;
  readonly server: number;
  readonly forMs: number;
  readonly key: string;
  /** What a server that restarts may have. */
  readonly data: typeof DATA | typeof OLD_DATA;
}

type WithoutTime<Kind> = Kind extends unknown ? Omit<Kind, 'atMs'> : never;

function ofKind(
  random: Random,
  kind: FaultKind,
  { process, server, forMs, key, data }: Target,
): WithoutTime<Fault> {
  switch (kind) {
    case 'process-killed':
      return { kind, process, ...(random.chance(0.6) && { againAfterMs: forMs }) };
    case 'process-vanished':
    case 'process-shut-down':
      return { kind, process };
    case 'process-stands-still':
      return { kind, process, forMs, how: random.pick(['stopped', 'blocked', 'asleep']) };
    case 'process-clock-set':
      return { kind, process, byMs: random.pick([-60_000, -500, 500, 60_000]) };
    case 'force-released':
      return { kind, process, key };
    case 'seen-released':
    case 'work-forgotten':
      return { kind, process, key, afterMs: random.pick(THINKS_MS) };
    case 'instance-released':
      return { kind, process, victim: random.between(0, 3), afterMs: random.pick(THINKS_MS) };
    case 'server-frozen':
    case 'password-changed':
    case 'memory-full':
    case 'replication-cut':
      return { kind, server, forMs };
    case 'server-slow':
      return { kind, server, forMs, eachMs: random.pick([1, 10, 50]) };
    case 'server-restarted':
      return {
        ...{ kind, server, forMs },
        ...random.pick<(typeof DATA)[number]>(data),
        loadingMs: random.pick([0, 0, 300]),
      };
    case 'server-flushed':
    case 'scripts-flushed':
    case 'connections-reset':
      return { kind, server };
    case 'server-clock-set':
      return { kind, server, byMs: random.pick([-60_000, -500, 500, 60_000]) };
    case 'data-restored':
      return { kind, server, missingMs: random.pick([50, 1_000]) };
    case 'foreign-value':
      return { kind, server, key, forMs, at: random.pick(['main', 'fence', 'queue', 'holders']) };
    case 'key-forbidden':
      return { kind, server, key, forMs };
    case 'messages-forged':
    case 'line-lost':
    case 'key-lost':
      return { kind, server, key };
    case 'link-cut':
      return {
        ...{ kind, process, server, forMs },
        directions: random.pick([BOTH, ['to server'], ['to process']]),
      };
    case 'link-slow':
      return { kind, process, server, forMs, extraMs: random.pick([5, 50, 300]) };
    case 'link-stalled':
    case 'link-reset':
      return { kind, process, server };
    case 'fail-over':
      return { kind, server, to: random.pick(['first', 'last']) };
  }
}
