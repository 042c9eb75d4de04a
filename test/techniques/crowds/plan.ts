/** What callers want of a store, and what is done to it meanwhile; all of it from one seed. */
import type { LeadPlan } from '../faults/candidate.js';
import type { How } from '../faults/recorded-calls.js';
import { Random } from '../faults/random.js';

export const STORES = ['memory', 'one-redis', 'slow-redis', 'cluster', 'three-masters'] as const;

/** Of `cluster-fail-over` and `sentinel` masters die, and replicas take their places: a test of seconds has no time for that. */
export const LONG_STORES = [...STORES, 'cluster-fail-over', 'sentinel'] as const;

/** `slow-redis` is one Redis behind a network that takes 1 ms. */
export type StoreKind = (typeof LONG_STORES)[number];

type Range = readonly [least: number, most: number];

/** Callers of one process who want alike. Each draws from what is listed, so a choice that is listed twice comes twice as often. */
export interface Crew {
  /** Index of the process that they are in. */
  readonly process: number;
  readonly services: number;
  /** Of each service. */
  readonly callers: number;
  readonly startAtMs?: number;
  /** So many locks for each caller. Default: until the run is over. */
  readonly rounds?: number;
  readonly keys: readonly string[];
  /** How many of them at once. Default: one. */
  readonly keysAtOnce?: Range;
  /** 'exclusive', 'shared' or 'limit:<n>'. Default: exclusive. */
  readonly modes?: readonly string[];
  /** Of those that a limit counts. Default: one. */
  readonly places?: Range;
  /** Default: `run`. */
  readonly hows?: readonly How[];
  readonly ttlsMs: readonly number[];
  readonly waitsMs: readonly number[];
  /** With this probability a caller gives up early. Default: 0. */
  readonly impatience?: number;
  /** With this probability a lock has a `minHold`. Default: 0. */
  readonly minHold?: number;
  /** With this probability a lock goes to another service of the crew. Default: 0. */
  readonly detaches?: number;
  /** With this probability a call replaces the holder of its key. Default: 0. */
  readonly replaces?: number;
  /** With this probability a call is for work that is to be done once. Default: 0. */
  readonly once?: number;
  /** Each service is a candidate for it. */
  readonly lead?: LeadPlan;
  /** Each service starts it, at the same times. */
  readonly job?: JobPlan;
  readonly holdMs: Range;
  readonly pauseMs: Range;
  /** Who they are, and where they mean to be, on one Redis. Default: everybody's user, database 0. */
  readonly user?: string;
  readonly database?: number;
}

/** A job of a schedule, as `@CronLock` locks it. */
export interface JobPlan {
  readonly name: string;
  readonly everyMs: number;
  /** For so long from its start no other process runs it. */
  readonly atLeastMs: number;
}

export type Fault = { readonly atMs: number } & (
  | { readonly kind: 'all-data-lost' }
  /** Everybody who waits for a key is forgotten, and nothing else. */
  | { readonly kind: 'line-lost'; readonly key: string }
  | { readonly kind: 'key-lost'; readonly key: string }
  | { readonly kind: 'connections-killed' }
  /** The master of a key dies, its replica takes over, and it comes back as a replica of that. */
  | { readonly kind: 'fail-over'; readonly key: string }
  /** The slot of a key moves to another master of a Cluster, and for a time each of the two has some of its keys. */
  | { readonly kind: 'slot-moved'; readonly key: string }
  | {
      readonly kind: 'process-killed';
      readonly process: number;
      /** Requests of its own may be on their way, and be granted what nobody will ever tell of. */
      readonly asks?: boolean;
    }
);

export interface EnginePlan {
  readonly seed: number;
  readonly store: StoreKind;
  readonly lengthMs: number;
  readonly crews: readonly Crew[];
  readonly faults: readonly Fault[];
}

/** Until a replica has taken over, its old master has come back, and callers are served again. */
const FAIL_OVER_MS = 9_500;

/** Before a fail-over something else happens. */
const OTHER_FAULT_MS = 1_500;

/** Longer than any fair mix lets anybody wait. */
export const FAIR_WAIT_MS = 10_000;

const KEYS = ['a', 'b', 'c', 'd'] as const;
const TTLS_MS = [900, 1_500] as const;

const LEADER = 'leader';

/** Late starters run a job again, if they are later than `atLeastMs`. */
const JOB: JobPlan = { name: 'job', everyMs: 700, atLeastMs: 400 };

/** The key of all calls that replace its holder. */
export const NEWEST = 'newest';

/** Over several masters there are no modes, and no calls that replace others or are for work to be done once. */
export const hasModes = (store: StoreKind): boolean => store !== 'three-masters';

/** The second process holds nothing for long, and is killed while it waits. */
const DOOMED = 1;

/** Before the first fault, after each and after the last one. */
const CALM_MS = 1_000;

const ONE_STORE = {
  modes: ['exclusive', 'exclusive', 'shared', 'shared', 'limit:3'],
  places: [1, 3],
  detaches: 0.06,
  replaces: 0.03,
  once: 0.03,
} satisfies Partial<Crew>;

/** The random test of one store: callers of all kinds, and, where others can reach its data, faults of all kinds. */
export function planOf(seed: number, store: StoreKind, lengthMs: number): EnginePlan {
  const random = new Random(seed);
  const everybody: Crew = {
    process: 0,
    services: random.between(3, 5),
    callers: random.between(3, 6),
    keys: random.sample(KEYS, random.between(3, KEYS.length)),
    keysAtOnce: [1, 3],
    ...(hasModes(store) && ONE_STORE),
    hows: ['run', 'run', 'acquire', 'acquire', 'tryAcquire', 'poll'],
    ttlsMs: TTLS_MS,
    waitsMs: [FAIR_WAIT_MS, FAIR_WAIT_MS, FAIR_WAIT_MS, 100],
    impatience: 0.1,
    minHold: 0.03,
    lead: { name: LEADER, ttlMs: TTLS_MS[0], rotateEveryMs: 1_000 },
    job: JOB,
    holdMs: [0, random.pick([2, 10, 40])],
    pauseMs: [0, random.pick([1, 10, 40])],
  };
  if (store === 'memory') return { seed, store, lengthMs, crews: [everybody], faults: [] };
  const doomed: Crew = {
    ...everybody,
    process: DOOMED,
    services: 1,
    callers: 20,
    startAtMs: 200,
    holdMs: [0, 1],
    waitsMs: [FAIR_WAIT_MS],
  };
  const { keys } = everybody;
  const draw = hasReplicas(store) ? drawFailOvers : drawFaults;
  const faults = draw(random, { store, keys, lengthMs });
  return { seed, store, lengthMs, crews: [everybody, doomed], faults };
}

const hasReplicas = (store: StoreKind): boolean =>
  store === 'cluster-fail-over' || store === 'sentinel';

const isCluster = (store: StoreKind): boolean =>
  store === 'cluster' || store === 'cluster-fail-over';

interface Stage {
  readonly store: StoreKind;
  readonly keys: readonly string[];
  readonly lengthMs: number;
}

const DOOM: Fault = { atMs: CALM_MS, kind: 'process-killed', process: DOOMED, asks: true };

/** One after the other, with time to get over each. */
function drawFailOvers(random: Random, { store, keys, lengthMs }: Stage): readonly Fault[] {
  const faults: Fault[] = [DOOM];
  let atMs = 2 * CALM_MS;
  while (atMs + OTHER_FAULT_MS + FAIL_OVER_MS <= lengthMs) {
    faults.push(
      isCluster(store) ? slotMoved(random, keys)(atMs) : { atMs, kind: 'connections-killed' },
      { atMs: atMs + OTHER_FAULT_MS, kind: 'fail-over', key: random.pick(keys) },
    );
    atMs += OTHER_FAULT_MS + FAIL_OVER_MS;
  }
  return faults;
}

type Card = (atMs: number) => Fault;

/** Of a key that is held most of the time, or of one for short sections. */
const slotMoved =
  (random: Random, keys: readonly string[]): Card =>
  (atMs) => ({
    atMs,
    kind: 'slot-moved',
    key: random.pick([LEADER, JOB.name, NEWEST, random.pick(keys)]),
  });

function drawFaults(random: Random, { store, keys, lengthMs }: Stage): readonly Fault[] {
  const all: Card[] = [
    (atMs) => ({ atMs, kind: 'all-data-lost' }),
    (atMs) => ({ atMs, kind: 'line-lost', key: random.pick(keys) }),
    (atMs) => ({ atMs, kind: 'key-lost', key: random.pick(keys) }),
    (atMs) => ({ atMs, kind: 'connections-killed' }),
  ];
  if (isCluster(store)) all.push(slotMoved(random, keys));
  const faults: Fault[] = [DOOM];
  let [atMs, cards] = [2 * CALM_MS, random.sample(all)];
  while (atMs + CALM_MS <= lengthMs) {
    const [card, ...rest] = cards;
    faults.push(card!(atMs));
    cards = rest.length > 0 ? rest : random.sample(all);
    atMs += CALM_MS + random.between(0, CALM_MS);
  }
  return faults;
}
