import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { rmSync } from 'node:fs';
import { watchHandles } from '../../support/no-leaks.js';
import { playRound, type Round } from '../faults/orchestrator.js';
import { LONGEST_TTL_MS, type Plan, planOf } from '../faults/plan.js';
import { reportOf } from '../faults/report.js';

/** Another one, to see a failure again: HOLDFAST_FAULT_SEED=… npm test -- test/techniques/soak/faults */
const SEED = Number(process.env.HOLDFAST_FAULT_SEED ?? 20_260_401);

const LIMIT_MS = 90_000;

const handles = watchHandles();

afterAll(() => handles.expectNoneOpen());

describe('three servers and four processes, under faults of all kinds', () => {
  let round: Round;

  beforeAll(async () => {
    round = await playRound(planOf({ seed: SEED, nodes: 3, lengthMs: 15_000 }));
  }, LIMIT_MS);

  it('every promise is kept under random faults', () => {
    if (round.violations.length > 0) throw new Error(reportOf(round));
  });
});

describe('clients that do wrong', () => {
  /** Of four processes three are stopped for longer than their leases last, and two seconds later three others. */
  const stopped = [0, 1, 2, 1, 2, 3];
  const plan: Plan = {
    mode: 'forgetful',
    seed: SEED,
    nodes: 1,
    clients: 4,
    withoutHandoff: [1, 3],
    lengthMs: 4_000,
    steps: stopped.map((target, step) => ({
      step,
      lane: target,
      atMs: step < 3 ? 500 : 2_500,
      forMs: 1.4 * LONGEST_TTL_MS,
      kind: 'client-stopped',
      target,
    })),
  };

  it(
    'are found out: they ignore that their lease is over',
    async () => {
      const { violations, folder } = await playRound(plan, 'ignores-loss');
      rmSync(folder, { recursive: true, force: true });
      expect(violations).toContainEqual(expect.stringMatching(/^overlap: /));
    },
    LIMIT_MS,
  );
});
