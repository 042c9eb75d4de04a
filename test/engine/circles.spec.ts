import { afterAll, describe, expect, it } from '@jest/globals';
import { watchHandles } from '../support/no-leaks.js';
import { share } from '../support/soak.js';
import { openBackend } from './backends.js';
import { type Crew, type EnginePlan, FAIR_WAIT_MS, type StoreKind, STORES } from './plan.js';
import { expectSound } from './report.js';
import { type EngineRound, playOnce, playRound } from './stage.js';

const LENGTH_MS = share(700, 3_000);
const LIMIT_MS = 60_000;

/** Of the rate of those who poll. Both vary by a factor on a busy machine; callers who went round in a circle had a twentieth. */
const LEAST_RATIO = 0.25;

/** On which they are compared: on a server, a circle is also seen by the scripts that it takes. */
const COMPARED = share<readonly StoreKind[]>(['memory', 'three-masters'], STORES);

/** 5 services of 8 callers each, who transfer between two of three accounts. */
const TRANSFERS: Crew = {
  process: 0,
  services: 5,
  callers: 8,
  keys: ['account:1', 'account:2', 'account:3'],
  keysAtOnce: [2, 2],
  ttlsMs: [10_000],
  waitsMs: [FAIR_WAIT_MS],
  holdMs: [0, 1],
  pauseMs: [0, 0],
};

/** The same services, who want any of three keys, in any mode that everybody may mix. */
const ALL_MODES: Crew = {
  ...TRANSFERS,
  keys: ['a', 'b', 'c'],
  keysAtOnce: [1, 3],
  modes: ['exclusive', 'exclusive', 'shared'],
};

const handles = watchHandles();

afterAll(() => handles.expectNoneOpen());

function grantsASecond({ events }: EngineRound): number {
  const grants = events.filter(({ type }) => type === 'granted');
  return (1_000 * grants.length) / (grants.at(-1)!.at - grants[0]!.at);
}

describe('callers of several keys', () => {
  it.each(STORES)(
    'HF-6 transfers between 3 accounts do not go in a circle, as those who poll do not: %s',
    async (store) => {
      const plan: EnginePlan = { seed: 6, store, lengthMs: LENGTH_MS, crews: [], faults: [] };
      const backend = await openBackend(store);
      try {
        const waiting = await playRound({ ...plan, crews: [TRANSFERS] }, backend);
        expectSound(waiting);
        if (!COMPARED.includes(store)) return;
        const polls: Crew = { ...TRANSFERS, hows: ['poll'] };
        const polling = await playRound({ ...plan, crews: [polls] }, backend);
        expect(grantsASecond(waiting) / grantsASecond(polling)).toBeGreaterThan(LEAST_RATIO);
      } finally {
        await backend.close();
      }
    },
    LIMIT_MS,
  );

  it.each(STORES)(
    'HF-6 callers of any keys in any mode never wait in a circle: %s',
    async (store) => {
      const plan = { seed: 66, store, lengthMs: LENGTH_MS, crews: [ALL_MODES], faults: [] };
      expectSound(await playOnce(plan));
    },
    LIMIT_MS,
  );
});
