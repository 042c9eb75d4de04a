import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomInt } from 'node:crypto';
import { cases } from '../../../support/cases.js';
import { ClockShim } from './clock-shim.js';
import { describeDifference, firstDifference, shrunk } from './comparison.js';
import { randomSteps } from './random-steps.js';
import { ModelServer } from './model-server.js';
import { RealServer } from './real-server.js';

const STEPS = cases(20_000, 60_000);
/** A step takes about 0.5 ms, and more on a busy machine. */
const LIMIT_MS = 120_000 + 10 * STEPS;
const SEED = Number(process.env.SIMULATION_SEED ?? randomInt(1_000_000_000));

describe('The model of a Redis server', () => {
  let shim: ClockShim | undefined;
  let real: RealServer | undefined;

  beforeAll(async () => {
    shim = new ClockShim();
    real = await RealServer.start(shim);
  });

  afterAll(async () => {
    await real?.stop();
    shim?.remove();
  });

  it(
    `answers what Redis answers, and has the same keys afterwards, in ${STEPS} random steps from seed ${SEED}`,
    async () => {
      if (real === undefined) throw new Error('there is no server to compare with');
      const model = new ModelServer(real.runId);
      const servers = { model, real };
      let played = 0;
      for (let seed = SEED; played < STEPS; seed += 1) {
        const steps = randomSteps(seed, model);
        const difference = await firstDifference(servers, steps);
        if (difference !== undefined) {
          const least = await shrunk(servers, difference);
          throw new Error(`SIMULATION_SEED=${seed}\n${describeDifference(least)}`);
        }
        played += steps.length;
      }
      expect(played).toBeGreaterThanOrEqual(STEPS);
    },
    LIMIT_MS,
  );
});
