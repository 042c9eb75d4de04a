import { afterAll, describe, it } from '@jest/globals';
import { watchHandles } from '../../support/no-leaks.js';
import { type Crew, type EnginePlan, FAIR_WAIT_MS } from '../crowds/plan.js';
import { expectSound } from '../crowds/report.js';
import { playOnce } from '../crowds/stage.js';

const LIMIT_MS = 90_000;

/** Everybody waits for it by the time it is given back. */
const HELD_MS = 4_000;

const HOLDER: Crew = {
  process: 0,
  services: 1,
  callers: 1,
  rounds: 1,
  keys: ['k'],
  ttlsMs: [30_000],
  waitsMs: [FAIR_WAIT_MS],
  holdMs: [HELD_MS, HELD_MS],
  pauseMs: [0, 0],
};

/** Each wants the key once, together with all others. */
const READERS: Crew = {
  ...HOLDER,
  process: 1,
  startAtMs: 300,
  modes: ['shared'],
  waitsMs: [20_000],
  holdMs: [0, 20],
};

const handles = watchHandles();

afterAll(() => handles.expectNoneOpen());

const planWith = (plan: Omit<EnginePlan, 'seed' | 'lengthMs'>): EnginePlan => ({
  ...{ seed: 10, lengthMs: HELD_MS + 1_000 },
  ...plan,
});

describe('many readers in line', () => {
  it(
    'HF-9 those who died keep nobody waiting who lives',
    async () => {
      const crowd: Crew = { ...READERS, callers: 1_500 };
      const writer: Crew = { ...HOLDER, startAtMs: HELD_MS - 200, holdMs: [0, 0], rounds: 20 };
      const killed = { atMs: HELD_MS - 500, kind: 'process-killed', process: 1 } as const;
      const crews = [HOLDER, crowd, writer];
      expectSound(await playOnce(planWith({ store: 'one-redis', crews, faults: [killed] })));
    },
    LIMIT_MS,
  );

  it(
    'HF-12 6,000 of one process cost it no lock that it holds meanwhile',
    async () => {
      const crowd: Crew = { ...READERS, callers: 6_000 };
      const others: Crew = {
        ...HOLDER,
        process: 1,
        callers: 50,
        keys: Array.from({ length: 1_000 }, (_, index) => `other:${index}`),
        ttlsMs: [4_000],
        holdMs: [HELD_MS + 1_000, HELD_MS + 1_000],
      };
      const crews = [HOLDER, crowd, others];
      expectSound(await playOnce(planWith({ store: 'one-redis', crews, faults: [] })));
    },
    LIMIT_MS,
  );
});
