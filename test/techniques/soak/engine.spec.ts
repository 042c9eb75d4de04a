import { afterAll, describe, it } from '@jest/globals';
import { watchHandles } from '../../support/no-leaks.js';
import { planOf, STORES } from '../crowds/plan.js';
import { expectSound } from '../crowds/report.js';
import { playOnce } from '../crowds/stage.js';

/** Another one, to see a failure again: HOLDFAST_ENGINE_SEED=… npm test -- test/techniques/soak/engine */
const SEED = Number(process.env.HOLDFAST_ENGINE_SEED ?? 20_261_121);

const LENGTH_MS = 6_000;

const handles = watchHandles();

afterAll(() => handles.expectNoneOpen());

describe('callers of all kinds under random faults', () => {
  it.each(STORES)(
    'exclude each other, are served soon and waste nothing: %s',
    async (store) => {
      expectSound(await playOnce(planOf(SEED, store, LENGTH_MS)));
    },
    60_000,
  );
});
