import { check } from './checker/check.js';
import { play } from './play.js';
import type { Scenario } from './scenario.js';

/** What kind of promise is broken: `overlap: …` */
export const propertyOf = (violation: string): string => violation.slice(0, violation.indexOf(':'));

/** A scenario of the same seed, and still with that kind of violation. */
export function shrink(scenario: Scenario, property: string, mostTries = 2_000): Scenario {
  let [smallest, tries] = [scenario, 0];
  const fails = (candidate: Scenario): boolean => {
    tries += 1;
    return check(play(candidate)).some((violation) => propertyOf(violation) === property);
  };
  for (let hasShrunk = true; hasShrunk && tries < mostTries;) {
    hasShrunk = false;
    for (const candidate of candidatesOf(smallest)) {
      if (tries >= mostTries) break;
      if (!fails(candidate)) continue;
      smallest = candidate;
      hasShrunk = true;
      break;
    }
  }
  return smallest;
}

/** Everything that is one piece smaller, the large pieces first. */
function* candidatesOf(scenario: Scenario): Generator<Scenario> {
  const { processes, faults } = scenario;
  yield* without(faults, (rest) => ({ ...scenario, faults: rest }));
  for (const [index, { callers }] of processes.entries()) {
    const change = (next: Partial<(typeof processes)[number]>): Scenario => ({
      ...scenario,
      processes: processes.with(index, { ...processes[index]!, ...next }),
    });
    // A process without callers stays, so that the others keep their numbers.
    if (callers.length > 0) yield change({ callers: [] });
    yield* without(callers, (rest) => change({ callers: rest }));
    for (const [caller, { operations }] of callers.entries())
      yield* without(operations, (rest) =>
        change({ callers: callers.with(caller, { ...callers[caller]!, operations: rest }) }),
      );
    yield* simplerOperations(callers, (next) => change({ callers: next }));
  }
}

type Callers = Scenario['processes'][number]['callers'];

/** The options of an operation, one less each time. */
function* simplerOperations(
  callers: Callers,
  change: (callers: Callers) => Scenario,
): Generator<Scenario> {
  const names = [
    'inner',
    'extend',
    'patienceMs',
    'maxHoldMs',
    'minHoldMs',
    'blocksMs',
    'release',
    'detach',
    'stopsAfterMs',
  ] as const;
  for (const [caller, plan] of callers.entries()) {
    for (const [index, operation] of plan.operations.entries()) {
      for (const name of names) {
        if (operation[name] === undefined) continue;
        const { [name]: _left, ...simpler } = operation;
        const operations = plan.operations.with(index, simpler);
        yield change(callers.with(caller, { ...plan, operations }));
      }
    }
  }
}

/** Without a half of them, a quarter, and each single one. */
function* without<Item, Result>(
  items: readonly Item[],
  make: (rest: readonly Item[]) => Result,
): Generator<Result> {
  for (let size = items.length; size >= 1; size = size > 1 ? Math.ceil(size / 2) : 0)
    for (let from = 0; from < items.length; from += size)
      yield make([...items.slice(0, from), ...items.slice(from + size)]);
}
