/** Plays worlds until one of them breaks a promise. */
import { check } from './checker/check.js';
import { play, type Played } from './play.js';
import { scenarioOf } from './profiles.js';
import type { SizeName } from './profiles/size.js';
import type { ProfileName, Scenario } from './scenario.js';
import { propertyOf, shrink } from './shrink.js';
import { svgOf } from './timeline-svg.js';
import { timelineOf } from './timeline.js';

/** What many worlds came to. */
export interface Tally {
  worlds: number;
  simulatedMs: number;
  steps: number;
  faults: number;
  grants: number;
  /** Ways in which worlds went, of those that were told apart. */
  readonly paths: Set<string>;
}

export interface WorldName {
  readonly profile: ProfileName;
  readonly seed: number;
  readonly size?: SizeName | undefined;
}

export interface Finding {
  readonly size?: SizeName | undefined;
  readonly scenario: Scenario;
  readonly violations: readonly string[];
}

export const newTally = (): Tally => ({
  ...{ worlds: 0, simulatedMs: 0, steps: 0, faults: 0, grants: 0 },
  paths: new Set(),
});

/** Plays the world of a seed, and says what was wrong with it. To be called within `ownTurn`. */
export const tryWorld = ({ profile, seed, size }: WorldName, tally: Tally): Finding | undefined => {
  const found = tryScenario(scenarioOf(profile, seed, size), tally);
  return found && { ...found, size };
};

/** Plays one world, and says what was wrong with it. To be called within `ownTurn`. */
export function tryScenario(scenario: Scenario, tally: Tally): Finding | undefined {
  const played = play(scenario);
  tally.worlds += 1;
  tally.simulatedMs += played.simulatedMs;
  tally.steps += played.steps;
  tally.faults += played.faults;
  tally.grants += played.events.filter(({ type }) => type === 'granted').length;
  tally.paths.add(pathOf(played));
  const violations = check(played);
  return violations.length === 0 ? undefined : { scenario, violations };
}

/** What happened, without names and times: two worlds that went alike count once. */
const pathOf = ({ events }: Played): string => {
  const pairs = new Set<string>();
  let before = '';
  for (const { type } of events) {
    pairs.add(`${before}>${type}`);
    before = type;
  }
  return [...pairs].sort().join(' ');
};

/** For a human. */
export interface Report {
  readonly text: string;
  /** The shortest world, as a picture. */
  readonly svg: string;
}

/** What is broken, the command that repeats it, and the shortest world in which it is. */
export function reportOf({ scenario, violations, size }: Finding): Report {
  const [first = ''] = violations;
  const smallest = shrink(scenario, propertyOf(first));
  const played = play(smallest);
  const { profile, seed } = scenario;
  const operations = smallest.processes
    .flatMap(({ callers }) => callers)
    .flatMap((caller) => caller.operations).length;
  const broken = check(played);
  const text = [
    `simulate: profile ${profile}, seed ${seed}`,
    ...violations.map((violation) => `  ${violation}`),
    `Again: npm run simulate -- --profile ${profile} --seed ${seed} --worlds 1${size === 'small' ? ' --size small' : ''}`,
    `Shrunk to ${operations} calls and ${smallest.faults.length} faults:`,
    timelineOf(played),
    ...broken.map((violation) => `  ${violation}`),
    JSON.stringify(smallest),
  ].join('\n');
  return { text, svg: svgOf(played, broken) };
}
