import type { Random } from '../../faults/random.js';
import type { CallerPlan, Operation, ProcessPlan } from '../scenario.js';
import type { Features } from './features.js';

const NAMES = ['a', 'b', 'c', 'd'] as const;

/** They stay until they have what they want. */
const STAYS_MS = 120_000;

/** Who tries the free key again and again: as many tries as a share of them needs to be known. */
const TRIES = 120;

/**
 * The same processes, or others in half of the worlds, beside those who stay for long: jobs that hold a key each, callers who want such a key
 * together with one that nobody holds, and callers who want that one alone.
 */
export function withStaying(
  processes: readonly ProcessPlan[],
  random: Random,
  { staying, ttlsMs }: Features,
): readonly ProcessPlan[] {
  if (!staying) return processes;
  const [hot, ...colds] = random.sample(NAMES, random.between(2, NAMES.length));
  const isAlone = random.chance(0.5);
  const plan = (operation: Pick<Operation, 'keys' | 'waitMs' | 'holdMs'>): Operation => ({
    how: random.pick(['acquire', 'run']),
    pauseMs: 0,
    mode: 'exclusive',
    ttlMs: random.pick(ttlsMs),
    ...operation,
  });
  const job = (cold: string): CallerPlan => ({
    startMs: 0,
    operations: Array.from({ length: random.pick([1, 1, 2]) }, () => ({
      ...plan({ keys: [cold], waitMs: STAYS_MS, holdMs: random.pick([3_000, 15_000, 25_000]) }),
      // Its section needs the free key, too.
      ...(random.chance(0.2) && {
        how: 'run',
        inner: { ...plan({ keys: [hot!], waitMs: STAYS_MS, holdMs: 10 }), how: 'run' },
      }),
    })),
  });
  const waiter = (cold: string): CallerPlan => ({
    startMs: random.between(1, 2_000),
    operations: Array.from({ length: random.pick([1, 1, 3]) }, () =>
      plan({ keys: [hot!, cold], waitMs: STAYS_MS, holdMs: random.pick([0, 10, 50]) }),
    ),
  });
  const other = (): CallerPlan => ({
    startMs: random.between(0, 3_000),
    operations: Array.from({ length: random.between(1, 6) }, () => ({
      ...plan({ keys: [hot!], waitMs: STAYS_MS, holdMs: random.pick([0, 1, 50]) }),
      pauseMs: random.pick([0, 100, 1_000, 3_000]),
    })),
  });
  const added = [
    ...colds.map(job),
    ...colds.flatMap((cold) => Array.from({ length: random.pick([1, 1, 2]) }, () => waiter(cold))),
    ...Array.from({ length: random.between(1, 3) }, other),
  ].map((caller) => ({ caller, process: random.between(0, processes.length - 1) }));
  if (random.chance(0.5)) added.push({ caller: tries(hot!), process: 0 });
  return processes.map((process, index) => ({
    ...process,
    callers: [
      ...added.filter((each) => each.process === index).map(({ caller }) => caller),
      ...(isAlone ? [] : process.callers),
    ],
  }));
}

function tries(key: string): CallerPlan {
  const operation: Operation = {
    ...{ how: 'tryAcquire', keys: [key], mode: 'exclusive', ttlMs: 4_000 },
    ...{ pauseMs: 97, waitMs: 0, holdMs: 0 },
  };
  return { startMs: 100, operations: Array.from({ length: TRIES }, () => operation) };
}
