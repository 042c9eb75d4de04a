import { afterAll, describe, it } from '@jest/globals';
import { watchHandles } from '../../support/no-leaks.js';
import { share } from '../../support/soak.js';
import { type Crew, FAIR_WAIT_MS } from './plan.js';
import { expectSound } from './report.js';
import { playOnce } from './stage.js';

const handles = watchHandles();

afterAll(() => handles.expectNoneOpen());

describe('the fencing tokens of limited locks', () => {
  it('HF-8 stay close to the clock, however fast one lock follows another', async () => {
    const crew: Crew = {
      process: 0,
      services: 1,
      callers: 1,
      keys: ['k'],
      modes: ['limit:2'],
      hows: ['acquire'],
      ttlsMs: [10_000],
      waitsMs: [FAIR_WAIT_MS],
      holdMs: [0, 0],
      pauseMs: [0, 0],
    };
    const plan = {
      seed: 8,
      store: 'one-redis',
      lengthMs: share(1_500, 4_000),
      crews: [crew],
      faults: [],
    } as const;
    expectSound(await playOnce(plan));
  }, 30_000);
});
