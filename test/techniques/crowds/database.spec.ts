import { afterAll, afterEach, beforeEach, describe, it } from '@jest/globals';
import { watchHandles } from '../../support/no-leaks.js';
import { type EngineBackend, openBackend } from './backends.js';
import { type Crew, type EnginePlan, FAIR_WAIT_MS } from './plan.js';
import { expectSound } from './report.js';
import { playRound } from './stage.js';

const LIMITED = 'limited';

const CREW: Crew = {
  process: 0,
  services: 2,
  callers: 3,
  keys: ['a', 'b'],
  ttlsMs: [10_000],
  waitsMs: [FAIR_WAIT_MS],
  holdMs: [0, 20],
  pauseMs: [0, 5],
  database: 5,
};

const handles = watchHandles();
let backend: EngineBackend;

beforeEach(async () => {
  backend = await openBackend('one-redis');
});

afterEach(() => backend.close());

afterAll(() => handles.expectNoneOpen());

describe('services that are to lock in one database', () => {
  it('HF-1 locks are never in another database, even if the user may not select the right one', async () => {
    const rights = ['on', `>${LIMITED}`, '~*', '&*', '+@all', '-select'];
    await backend.servers[0]!.command('ACL', 'SETUSER', LIMITED, ...rights);
    const crews = [CREW, { ...CREW, user: LIMITED, startAtMs: 500 }];
    const reconnect = { atMs: 1_500, kind: 'connections-killed' } as const;
    const plan: EnginePlan = {
      ...{ seed: 1, store: 'one-redis', lengthMs: 4_000 },
      ...{ crews, faults: [reconnect] },
    };
    expectSound(await playRound(plan, backend));
  }, 40_000);
});
