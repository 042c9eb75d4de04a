import type { Operation, Scenario } from '../scenario.js';

/** A small world, which is explored. */
export interface Scope {
  readonly name: string;
  readonly scenario: Scenario;
  /** To which the tests explore it; `npm run simulate:explore` goes on from there. */
  readonly depth: number;
}

interface Plan {
  readonly servers: 1 | 3;
  /** Default: 12. Fewer callers meet less often. */
  readonly depth?: number;
  /** Of each process, what each of its callers does. */
  readonly processes: readonly (readonly Partial<Operation>[])[];
}

const EXACT = { skewMs: 0, drift: 0 };

/** When callers begin: long after their processes are ready. In ms. */
const BEGIN_MS = 30;

/** As long as a message takes at the most that others are let before, in µs. */
const LATENCY_US = 2_000;

const LEASE: Operation = {
  ...{ how: 'acquire', pauseMs: 0, keys: ['a'], mode: 'exclusive' },
  ...{ ttlMs: 5_000, waitMs: 10_000, holdMs: 1 },
};

const PLANS: Readonly<Record<string, Plan>> = {
  'two processes, one key': { servers: 1, depth: 24, processes: [[{}], [{}]] },
  'two processes with two callers each, one key': {
    servers: 1,
    depth: 28,
    processes: [
      [{}, {}],
      [{}, {}],
    ],
  },
  'three processes, one key': { servers: 1, processes: [[{}], [{}], [{}]] },
  'two processes, two keys in two orders': {
    servers: 1,
    depth: 30,
    processes: [[{ keys: ['a', 'b'] }], [{ keys: ['b', 'a'] }]],
  },
  'three processes, three keys in a circle': {
    servers: 1,
    processes: [[{ keys: ['a', 'b'] }], [{ keys: ['b', 'c'] }], [{ keys: ['c', 'a'] }]],
  },
  'a writer and two readers': {
    servers: 1,
    processes: [[{}], [{ mode: 'shared' }], [{ mode: 'shared' }]],
  },
  'three processes, two places': {
    servers: 1,
    depth: 18,
    processes: [[{ mode: 'limit:2' }], [{ mode: 'limit:2' }], [{ mode: 'limit:2' }]],
  },
  'readers and places of two keys': {
    servers: 1,
    depth: 38,
    processes: [
      [
        { mode: 'limit:2', holdMs: 100 },
        { mode: 'limit:2', keys: ['a', 'b'], pauseMs: 40 },
      ],
      [
        { mode: 'limit:2', holdMs: 30 },
        { mode: 'shared', keys: ['a', 'b'], pauseMs: 10 },
      ],
      [{ mode: 'limit:2', keys: ['a', 'b'], pauseMs: 20 }],
    ],
  },
  'one that does not wait, one that gives up': {
    servers: 1,
    processes: [[{}], [{ how: 'tryAcquire', waitMs: 0 }], [{ patienceMs: 2 }]],
  },
  'two processes, one key, three masters': { servers: 3, depth: 6, processes: [[{}], [{}]] },
  'three processes, one key, three masters': {
    servers: 3,
    depth: 3,
    processes: [[{}], [{}], [{}]],
  },
  'two processes, two keys, three masters': {
    servers: 3,
    depth: 8,
    processes: [[{ keys: ['a', 'b'] }], [{ keys: ['b', 'a'] }]],
  },
};

/** All of them. */
export const SCOPES: readonly Scope[] = Object.entries(PLANS).map(([name, plan]) => ({
  name,
  scenario: scenarioOf(plan),
  depth: plan.depth ?? 12,
}));

function scenarioOf({ servers, processes }: Plan): Scenario {
  return {
    profile: 'all',
    seed: 1,
    servers: Array.from({ length: servers }, () => ({ clock: EXACT, replicas: 0 })),
    processes: processes.map((callers) => ({
      clock: EXACT,
      startMs: 1,
      handoff: true,
      callers: callers.map((operation) => ({
        startMs: BEGIN_MS,
        operations: [{ ...LEASE, ...operation }],
      })),
    })),
    service: { nodeTimeoutMs: 1_000, clockDrift: 0.01, shutdownTimeoutMs: 200 },
    network: { latencyUs: LATENCY_US, jitterUs: 0 },
    faults: [],
  };
}
