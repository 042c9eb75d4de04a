import type { Random } from '../../faults/random.js';
import type { CallerPlan, Fault, Mode, Operation, ProcessPlan, Scenario } from '../scenario.js';

/** In ms: they wait until they have what they want, even if a clock is set back meanwhile. */
const PATIENT_MS = 120_000;

const KEYS = ['a', 'b', 'c', 'd'] as const;

/** What a staged world replaces. */
type Staged = Pick<Scenario, 'processes' | 'faults'>;

/**
 * The same world; or, in a few worlds, one that is made for what the plain verbs rely on: the fence after turns, the holder set, calls that
 * requests share, and the bound of proposals. Nothing else is wrong there, so the checks know more of it.
 */
export function withPlainCase(scenario: Scenario, random: Random): Scenario {
  const kinds = KINDS[scenario.profile];
  if (!random.chance(0.08) || kinds === undefined) return scenario;
  const { processes, faults } = random.pick(kinds)(random, scenario);
  const { nodeTimeoutMs, clockDrift, shutdownTimeoutMs } = scenario.service;
  return {
    ...scenario,
    network: { latencyUs: random.pick([50, 200, 1_000]), jitterUs: random.pick([0, 50]) },
    servers: scenario.servers.map(() => ({ clock: RIGHT, replicas: 0 })),
    service: { nodeTimeoutMs, clockDrift, shutdownTimeoutMs },
    processes,
    faults: faults.toSorted((one, other) => one.atMs - other.atMs),
  };
}

const RIGHT = { skewMs: 0, drift: 0 } as const;

const processOf = (callers: readonly CallerPlan[]): ProcessPlan => ({
  ...{ clock: RIGHT, startMs: 0, handoff: true, callers },
});

const operationOf = (random: Random, terms: Partial<Operation>): Operation => ({
  ...{ how: random.pick(['acquire', 'run']), keys: ['a'], mode: 'exclusive', pauseMs: 0 },
  ...{ ttlMs: 1_000, waitMs: PATIENT_MS, holdMs: 1, ...terms },
});

const callerOf = (startMs: number, ...operations: readonly Operation[]): CallerPlan => ({
  ...{ startMs, operations },
});

/** Callers of one process, each of whom has a turn. The last one stays. */
function turns(
  random: Random,
  startMs: number,
  terms: { readonly ttlMs: number; readonly lastMs: number },
): ProcessPlan {
  const { ttlMs, lastMs } = terms;
  const holds = [3, ...Array.from({ length: random.between(1, 4) }, () => random.between(1, 2))];
  return processOf([
    ...holds.map((holdMs, index) =>
      callerOf(startMs + Math.min(index, 1), operationOf(random, { ttlMs, holdMs })),
    ),
    callerOf(startMs + 1, operationOf(random, { ttlMs, holdMs: lastMs })),
  ]);
}

const setBack = (random: Random, atMs: number, server = 0): Fault => ({
  ...{ kind: 'server-clock-set', atMs, server, byMs: random.pick([-5_000, -60_000]) },
});

/** The first process does nothing more. */
function end(random: Random, atMs: number, ttlMs: number): Fault {
  const kind = random.pick(['process-killed', 'process-vanished', 'process-stands-still'] as const);
  return kind === 'process-stands-still'
    ? { kind, atMs, process: 0, forMs: 3 * ttlMs, how: random.pick(['stopped', 'asleep']) }
    : { kind, atMs, process: 0 };
}

/** Between the last turn and its end the clock is set back. */
function turnsThatEnd(random: Random): Staged {
  const ttlMs = random.pick([600, 1_000]);
  const next = callerOf(random.pick([30, 250, 250]), operationOf(random, { ttlMs }));
  return {
    processes: [turns(random, 20, { ttlMs, lastMs: 100 }), processOf([next])],
    faults: [setBack(random, random.between(60, 90))],
  };
}

/** The last turn has been renewed when the clock is set back. Then its process dies or freezes. */
function turnsThatDie(random: Random): Staged {
  const ttlMs = random.pick([300, 600, 1_000]);
  const atMs = Math.ceil(ttlMs * (1.5 + random.fraction()));
  const next = callerOf(random.pick([30, 4 * ttlMs]), operationOf(random, { ttlMs }));
  return {
    processes: [turns(random, 20, { ttlMs, lastMs: 8 * ttlMs }), processOf([next])],
    faults: [setBack(random, atMs), end(random, atMs + random.between(10, ttlMs), ttlMs)],
  };
}

/** The fence is ahead of the clock when they begin, and their process dies or freezes before a renewal. */
function turnsBehindTheFence(random: Random): Staged {
  const ttlMs = random.pick([300, 600, 1_000]);
  const next = { ...operationOf(random, { ttlMs }), pauseMs: random.pick([250, 4 * ttlMs]) };
  return {
    processes: [
      turns(random, 200, { ttlMs, lastMs: 2 * ttlMs }),
      processOf([callerOf(0, operationOf(random, { ttlMs }), next)]),
    ],
    faults: [setBack(random, 100), end(random, random.between(212, 200 + ttlMs / 3), ttlMs)],
  };
}

/** More callers than the time until the first grant is known has us, and none of them stays. */
function turnsWithoutWork(random: Random): Staged {
  const callers = Array.from({ length: 150 }, () =>
    callerOf(20, operationOf(random, { ttlMs: 4_000, holdMs: 0 })),
  );
  return { processes: [processOf(callers)], faults: [] };
}

/** Many callers of each process ask at the same moments, for keys of which some are held. One may be forbidden for a time. */
function sharedCalls(random: Random): Staged {
  const rounds = Array.from({ length: 5 }, (_, index) => 20 * (index + 1));
  const caller = (startMs: number): CallerPlan =>
    callerOf(
      startMs,
      operationOf(random, {
        how: random.pick(['tryAcquire', 'tryRun', 'acquire']),
        keys: [random.pick(KEYS)],
        waitMs: 0,
        holdMs: random.pick([1, 10, 30]),
      }),
    );
  const processes = Array.from({ length: random.between(2, 3) }, () =>
    processOf(rounds.flatMap((startMs) => Array.from({ length: 6 }, () => caller(startMs)))),
  );
  const forbidden: Fault = {
    ...{ kind: 'key-forbidden', atMs: random.between(25, 60), server: 0 },
    ...{ key: random.pick(KEYS), forMs: random.between(20, 60) },
  };
  return { processes, faults: random.chance(0.5) ? [forbidden] : [] };
}

/** Processes know the clocks of the masters, which are then all set back. */
function clocksSetBack(random: Random, { servers }: Scenario): Staged {
  const atMs = 200;
  const caller = (): CallerPlan =>
    callerOf(
      20,
      operationOf(random, { keys: ['b'] }),
      ...random
        .sample(['a', 'c', 'd'], 2)
        .map((key, index) =>
          operationOf(random, { keys: [key], pauseMs: index === 0 ? atMs + 20 : 1 }),
        ),
    );
  return {
    processes: [processOf([caller()]), processOf([caller(), caller()])],
    faults: servers.map((_, server) => ({
      ...{ kind: 'server-clock-set', atMs, server, byMs: -60_000 },
    })),
  };
}

/** The marker of holders together is deleted, and others want the key alone before a renewal puts it back. */
function markerLost(random: Random): Staged {
  const mode: Mode = random.pick(['shared', 'limit:2']);
  const ttlMs = 4_000;
  const together = (): CallerPlan =>
    callerOf(20, operationOf(random, { mode, ttlMs, holdMs: random.pick([1_500, 3_000]) }));
  const alone = (): CallerPlan =>
    callerOf(
      random.between(210, 1_200),
      operationOf(random, {
        how: random.pick(['tryAcquire', 'tryRun', 'acquire', 'run']),
        ttlMs,
      }),
    );
  return {
    processes: [
      processOf([together()]),
      processOf([...(random.chance(0.5) ? [together()] : []), alone()]),
      processOf([alone(), alone()]),
    ],
    faults: [{ kind: 'key-lost', atMs: 200, server: 0, key: 'a' }],
  };
}

/** A key that was released stays taken until `minHold` is over, while a process waits for it. Others come at the moment at which it ends. */
function keptUntilOthersCome(random: Random): Staged {
  const minHoldMs = random.pick([100, 200]);
  const kept = operationOf(random, { minHoldMs });
  const newcomers = (): CallerPlan[] =>
    Array.from({ length: 12 }, () =>
      callerOf(20 + minHoldMs + random.between(0, 30), operationOf(random, {})),
    );
  return {
    processes: [
      processOf([callerOf(20, kept)]),
      processOf([callerOf(50, operationOf(random, {}))]),
      processOf(newcomers()),
      processOf(newcomers()),
    ],
    faults: [],
  };
}

type Kind = (random: Random, scenario: Scenario) => Staged;

const KINDS: Partial<Record<Scenario['profile'], readonly Kind[]>> = {
  line: [
    turnsThatEnd,
    turnsThatDie,
    turnsBehindTheFence,
    turnsWithoutWork,
    sharedCalls,
    keptUntilOthersCome,
  ],
  quorum: [clocksSetBack],
  modes: [markerLost],
};
