import { describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { compiledFile } from '../../support/compiled.js';
import { share } from '../../support/soak.js';
import { newTally, reportOf, tryScenario } from './find.js';
import { play } from './play.js';
import { scenarioOf } from './profiles.js';
import { PROFILES, type Scenario } from './scenario.js';
import { ownTurn } from './world/settle.js';

/** The same worlds each time; fresh ones are for `npm run simulate`. Others: HOLDFAST_SIMULATION_SEED=… npm test -- test/techniques/simulation */
const SEED = Number(process.env.HOLDFAST_SIMULATION_SEED ?? 1);

/** A number, not a time: a faster machine has to see the same worlds. */
const WORLDS = share(10, 75);

const LIMIT_MS = 120_000;

/** Each of these worlds has broken a promise once. Whole, because another world follows from its seed when more can happen in worlds. */
const failed = readFileSync(new URL('./failed.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as { readonly why: string; readonly scenario: Scenario });

async function expectNoViolation(scenario: Scenario): Promise<void> {
  const found = await ownTurn(() => tryScenario(scenario, newTally()));
  if (found !== undefined) throw new Error((await ownTurn(() => reportOf(found))).text);
}

describe('simulated worlds', () => {
  it.each(failed)(
    'keep every promise in $scenario.profile $scenario.seed: $why',
    async ({ scenario }) => {
      await expectNoViolation(scenario);
    },
  );

  it.each(PROFILES)(
    `keep every promise in the worlds of the profile %s, from seed ${SEED} on`,
    async (profile) => {
      for (let seed = SEED; seed < SEED + WORLDS; seed += 1)
        await expectNoViolation(scenarioOf(profile, seed));
    },
    LIMIT_MS,
  );

  it.each(PROFILES)('go the same way twice from one seed: %s', async (profile) => {
    const [one, other] = [
      await ownTurn(() => play(scenarioOf(profile, SEED))),
      await ownTurn(() => play(scenarioOf(profile, SEED))),
    ];
    expect(JSON.stringify(other.events)).toBe(JSON.stringify(one.events));
    expect(other.digest).toBe(one.digest);
  });

  it(
    'go the same way in another process, whatever it has done before',
    async () => {
      const program = compiledFile(new URL('./digests.ts', import.meta.url));
      const { stdout } = await promisify(execFile)(process.execPath, [program, String(SEED)]);
      const own: string[] = [];
      for (const profile of PROFILES)
        own.push((await ownTurn(() => play(scenarioOf(profile, SEED)))).digest);
      expect(stdout.trim().split('\n')).toEqual(own);
    },
    LIMIT_MS,
  );
});
