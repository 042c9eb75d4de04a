import type { Random } from '../../faults/random.js';
import type { FaultKind, Mode, ProfileName } from '../scenario.js';
import type { LinkPlan } from '../world/link.js';
import { JOBS } from './draw-jobs.js';
import type { Size } from './size.js';

/** What may happen in a world: every seed has another part of everything (Groce et al., "Swarm testing", 2012). */
export interface Features {
  readonly size: Size;
  readonly serverCount: number;
  readonly replicas: number;
  readonly acknowledges: boolean;
  /** 0: none. */
  readonly guardMs: number;
  readonly network: LinkPlan;
  readonly nodeTimeoutMs: number;
  readonly skews: boolean;
  readonly drifts: boolean;
  readonly keys: readonly string[];
  readonly modes: readonly Mode[];
  /** Whether limits are set while they are used. */
  readonly limitChanges: boolean;
  /** Whether locks go to other processes. */
  readonly detaching: boolean;
  /** Whether there are candidates for a lead. */
  readonly leaders: boolean;
  /** Whether connections behave as those of other clients than ioredis. */
  readonly hasOtherClients: boolean;
  /** Whether locks are kept by a driver. */
  readonly hasDriver: boolean;
  /** Whether processes run jobs at the times of a schedule. */
  readonly jobs: boolean;
  /** Whether operators end locks. */
  readonly operators: boolean;
  /** Whether calls replace the holder. */
  readonly replacing: boolean;
  /** Whether some stay for long: jobs, and callers of several keys beside callers of one of them. */
  readonly staying: boolean;
  readonly severalKeys: boolean;
  /** Everybody asks in the same moment. */
  readonly crowds: boolean;
  /** Every call is a try. */
  readonly nobodyWaits: boolean;
  /** Nobody holds a lock for long. */
  readonly shortHolds: boolean;
  readonly nesting: boolean;
  readonly onceWork: 'none' | 'some' | 'only';
  readonly minHolds: boolean;
  readonly holdLimits: boolean;
  readonly extensions: boolean;
  readonly fixedLeases: boolean;
  readonly impatience: boolean;
  readonly blocks: boolean;
  readonly handoff: boolean;
  readonly ttlsMs: readonly number[];
  readonly lengthMs: number;
  readonly faults: readonly FaultKind[];
  /** At the most. */
  readonly mostFaults: number;
}

const PROCESS_FAULTS: readonly FaultKind[] = [
  'process-killed',
  'process-vanished',
  'process-shut-down',
  'process-stands-still',
];

const NETWORK_FAULTS: readonly FaultKind[] = [
  'link-cut',
  'link-slow',
  'link-stalled',
  'link-reset',
  'connections-reset',
];

const SERVER_FAULTS: readonly FaultKind[] = [
  'server-frozen',
  'server-slow',
  'server-restarted',
  'scripts-flushed',
  'memory-full',
];

/** What the promise does not cover, or with conditions only. */
const LOSSES: readonly FaultKind[] = [
  'server-flushed',
  'line-lost',
  'key-lost',
  'force-released',
  'server-clock-set',
  'process-clock-set',
];

const REPLICA_FAULTS: readonly FaultKind[] = ['fail-over', 'replication-cut'];

const NAMES = ['a', 'b', 'c', 'd'] as const;

/** What is drawn from one of them does not shift the others. */
interface Chances {
  readonly random: Random;
  readonly forDetaching: Random;
  readonly forLeaders: Random;
  readonly forStaying: Random;
}

export function featuresOf(
  profile: ProfileName,
  { random, forDetaching, forLeaders, forStaying }: Chances,
  size: Size,
): Features {
  const isQuorum =
    profile === 'quorum' ||
    (['lead', 'all', 'operator', 'cron', 'clients'].includes(profile) && random.chance(0.3));
  const serverCount = isQuorum ? random.pick(size.servers) : 1;
  // Over several masters there are exclusive locks, and nothing else.
  const isOne = serverCount === 1;
  const hasModes =
    profile === 'modes' ||
    ((profile === 'all' || profile === 'operator') && isOne && random.chance(0.5));
  const replicas = isOne && random.chance(0.25) ? random.between(1, 2) : 0;
  const onceWork =
    profile === 'once'
      ? 'only'
      : (profile === 'all' && isOne && random.chance(0.4)) ||
          (profile === 'operator' && isOne && random.chance(0.6))
        ? 'some'
        : 'none';
  const ttlsMs = random.pick([[300, 600], [1_000], [500, 2_000], [4_000]]);
  // As short as the library allows: a longer one hides leases that end too early.
  const guardMs = random.chance(0.15) ? Math.max(...ttlsMs) : 0;
  const limitChanges = hasModes && random.chance(0.4);
  const features: Features = {
    ...{ size, serverCount, replicas, onceWork, guardMs },
    acknowledges: random.chance(0.7),
    network: {
      latencyUs: random.pick([50, 200, 1_000, 5_000]),
      jitterUs: random.pick([0, 50, 500, 5_000]),
    },
    nodeTimeoutMs: random.pick([100, 250, 1_000]),
    skews: random.chance(0.5),
    drifts: random.chance(0.5),
    keys: random.sample(NAMES, random.pick([1, 1, 2, 3])),
    modes: hasModes ? modesOf(random) : ['exclusive'],
    limitChanges,
    // A limit may be set lower while a place goes to somebody else, who takes it all the same.
    detaching: hasModes && !limitChanges && forDetaching.chance(0.25),
    leaders: profile === 'lead' || (profile === 'all' && forLeaders.chance(0.3)),
    hasOtherClients: profile === 'clients',
    hasDriver: false,
    jobs: profile === 'cron',
    operators: profile === 'operator',
    replacing: profile === 'replace',
    staying: size.hasMany && (profile === 'line' || profile === 'all') && forStaying.chance(0.3),
    severalKeys: random.chance(0.4),
    crowds: random.chance(0.3),
    nobodyWaits: random.chance(0.05),
    shortHolds: false,
    nesting: random.chance(0.2),
    minHolds: random.chance(0.15),
    holdLimits: random.chance(0.1),
    extensions: random.chance(0.2),
    fixedLeases: random.chance(0.2),
    impatience: random.chance(0.3),
    blocks: random.chance(0.1),
    // Turns may pass a place on for a while after a limit was set lower.
    handoff: random.chance(0.7) && !limitChanges,
    ttlsMs,
    lengthMs: random.pick(size.lengthsMs),
    faults: faultsOf(random, replicas),
    mostFaults: size.faults,
  };
  const rare = staged(features, random);
  return { ...features, ...(profile === 'lead' ? longer(features) : rare), ...ofProfile(profile) };
}

const ofProfile = (profile: ProfileName): Partial<Features> => OF_PROFILES[profile] ?? {};

/** An instance that has stepped down is no candidate for a second, and a leader may rotate after a second. */
const longer = ({ lengthMs }: Features): Partial<Features> => ({ lengthMs: 500 + 2 * lengthMs });

/** Some worlds are made for what rarely comes about by chance. */
function staged(features: Features, random: Random): Partial<Features> {
  const { serverCount, replicas, guardMs, detaching } = features;
  const chance = random.fraction();
  if (detaching && chance > 0.4) return DETACHED_AND_RESTARTED;
  if (serverCount > 2) return chance < 0.12 ? RUSH_AND_LOSS : chance < 0.24 ? RUSH_AND_CALM : {};
  return chance < 0.12 && serverCount + replicas + guardMs === 1 ? RESETS_AND_LONG_LEASES : {};
}

const PLAIN = {
  ...{ guardMs: 0, modes: ['exclusive'], nesting: false, minHolds: false, blocks: false },
} satisfies Partial<Features>;

/** When many ask at once and nobody waits, votes are split. */
const RUSH = {
  ...PLAIN,
  crowds: true,
  nobodyWaits: true,
  lengthMs: 500,
  network: { latencyUs: 200, jitterUs: 500 },
} satisfies Partial<Features>;

/** A lock that a bare majority has, and the loss of one of it. */
const RUSH_AND_LOSS = {
  ...{ ...RUSH, ttlsMs: [4_000], faults: ['server-flushed'], mostFaults: 1, keys: ['a'] },
} satisfies Partial<Features>;

/** Whatever is left on any of the servers is seen when all have gone. */
const RUSH_AND_CALM = {
  ...{ ...RUSH, ttlsMs: [20_000], shortHolds: true, faults: [] },
} satisfies Partial<Features>;

/** What a request without an answer left behind: its lease is longer than it takes to remove it. */
const RESETS_AND_LONG_LEASES = {
  ...{ ...PLAIN, ttlsMs: [20_000], shortHolds: true, fixedLeases: false, severalKeys: false },
  ...{ lengthMs: 500, faults: ['link-reset', 'connections-reset'] },
  network: { latencyUs: 5_000, jitterUs: 500 },
} satisfies Partial<Features>;

/** A lock that was detached comes back with older data, and its text comes twice. */
const DETACHED_AND_RESTARTED = {
  ...{ minHolds: false, blocks: false, holdLimits: false, nesting: false, severalKeys: false },
  ...{ replicas: 0, ttlsMs: [4_000], guardMs: 4_000, lengthMs: 2_500 },
  ...{ faults: ['server-restarted'], mostFaults: 1 },
} satisfies Partial<Features>;

/** What else keeps keys taken, or ends locks, is left out. */
const OPERATED = {
  ...{ guardMs: 0, minHolds: false, blocks: false, holdLimits: false, fixedLeases: false },
  detaching: false,
} satisfies Partial<Features>;

/** One key, whose calls end each other. What else ends them is left out. */
const REPLACING = {
  ...{ ...PLAIN, severalKeys: false, nobodyWaits: false, shortHolds: false },
  ...{ holdLimits: false, extensions: false, fixedLeases: false },
} satisfies Partial<Features>;

/** A job has a key for each time of its schedule. */
const SCHEDULED = { ...PLAIN, keys: JOBS, lengthMs: 2_500 } satisfies Partial<Features>;

/** One Redis whose password changes, and nothing else goes wrong. */
const PASSWORDS = {
  ...{ guardMs: 0, faults: ['password-changed'], mostFaults: 3, blocks: false },
  ...{ fixedLeases: false, holdLimits: false },
} satisfies Partial<Features>;

/** What a driver can do, and what can happen to its database. */
const DRIVEN = { ...PLAIN, hasDriver: true, replicas: 0 } satisfies Partial<Features>;

const OF_PROFILES: Partial<Record<ProfileName, Partial<Features>>> = {
  replace: REPLACING,
  operator: OPERATED,
  cron: SCHEDULED,
  login: PASSWORDS,
  driver: DRIVEN,
};

function modesOf(random: Random): readonly Mode[] {
  const all: readonly Mode[] = ['exclusive', 'shared', 'shared', 'limit:2', 'limit:3'];
  return random.sample(all, random.between(2, all.length));
}

/** Where all faults are of one kind, what is promised of it can be checked more closely. */
function faultsOf(random: Random, replicas: number): readonly FaultKind[] {
  if (random.chance(0.25)) return [];
  if (replicas > 0 && random.chance(0.3)) return REPLICA_FAULTS;
  if (random.chance(0.25))
    return [random.pick([...PROCESS_FAULTS, ...NETWORK_FAULTS, ...SERVER_FAULTS, ...LOSSES])];
  const some = (kinds: readonly FaultKind[], chance: number): readonly FaultKind[] =>
    kinds.filter(() => random.chance(chance));
  return [
    ...some(PROCESS_FAULTS, 0.4),
    ...some(NETWORK_FAULTS, 0.3),
    ...some(SERVER_FAULTS, 0.3),
    ...(random.chance(0.5) ? some(LOSSES, 0.3) : []),
    ...(replicas > 0 ? [...some(REPLICA_FAULTS, 0.6), ...some(REPLICA_FAULTS, 0.6)] : []),
  ];
}
