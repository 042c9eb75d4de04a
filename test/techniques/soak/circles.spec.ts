import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { watchHandles } from '../../support/no-leaks.js';
import { type EngineBackend, openBackend } from '../crowds/backends.js';
import {
  type Crew,
  type EnginePlan,
  FAIR_WAIT_MS,
  hasModes,
  type StoreKind,
  STORES,
} from '../crowds/plan.js';
import { expectSound } from '../crowds/report.js';
import { type EngineRound, playRound } from '../crowds/stage.js';

const LENGTH_MS = 3_000;
const LIMIT_MS = 60_000;

/** Of the rate of those who poll. Both vary by a factor on a busy machine; callers who went round in a circle had a twentieth. */
const LEAST_RATIO = 0.25;

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

/** The same services, who want any of three keys, in any mode that everybody may mix there. */
const mixed = (store: StoreKind): Crew => ({
  ...TRANSFERS,
  keys: ['a', 'b', 'c'],
  keysAtOnce: [1, 3],
  ...(hasModes(store) && { modes: ['exclusive', 'exclusive', 'shared'] }),
});

const handles = watchHandles();

afterAll(() => handles.expectNoneOpen());

function grantsASecond({ events }: EngineRound): number {
  const grants = events.filter(({ type }) => type === 'granted');
  return (1_000 * grants.length) / (grants.at(-1)!.at - grants[0]!.at);
}

describe.each(STORES)('callers of several keys: %s', (store) => {
  let backend: EngineBackend;

  const play = (plan: Pick<EnginePlan, 'seed' | 'crews'>): Promise<EngineRound> =>
    playRound({ ...plan, store, lengthMs: LENGTH_MS, faults: [] }, backend);

  beforeAll(async () => {
    backend = await openBackend(store);
  }, LIMIT_MS);

  afterAll(() => backend.close());

  it(
    'HF-6 transfers between 3 accounts do not go in a circle, as those who poll do not',
    async () => {
      const waiting = await play({ seed: 6, crews: [TRANSFERS] });
      expectSound(waiting);
      const polling = await play({ seed: 6, crews: [{ ...TRANSFERS, hows: ['poll'] }] });
      expect(grantsASecond(waiting) / grantsASecond(polling)).toBeGreaterThan(LEAST_RATIO);
    },
    LIMIT_MS,
  );

  it(
    'HF-6 callers of any keys in any mode never wait in a circle',
    async () => {
      expectSound(await play({ seed: 66, crews: [mixed(store)] }));
    },
    LIMIT_MS,
  );
});
