import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import type { Granted, LockStore, WriteRequest } from '../../lib/store/lock-store.js';
import { detachedToken, newOwnerToken, type HoldMode } from '../../lib/store/owner-token.js';
import { keyNames } from '../../lib/store/redis/scripts/key-names.js';
import { raiseFenceScript } from '../../lib/store/redis/scripts/raise-fence.js';
import { systemRuntime } from '../../lib/time/runtime.js';
import { encoded } from '../support/encoded.js';
import { openStore, request } from './open-store.js';
import { ScriptServer } from './script-server.js';

let scripts: ScriptServer;
let redis: Redis;
let store: LockStore;

beforeAll(async () => {
  scripts = await ScriptServer.start();
  ({ redis } = scripts);
  ({ store } = await openStore({ redis }));
});

afterEach(() => redis.flushall());

afterAll(async () => {
  await store.close();
  await scripts.stop();
});

const written = async (): Promise<number> =>
  Number(/rdb_changes_since_last_save:(\d+)/.exec(await redis.info('persistence'))?.[1]);

async function held(mode: HoldMode = 'exclusive') {
  const lease = request('key', { token: newOwnerToken(systemRuntime, { mode }) });
  const { fencingToken } = (await store.acquire(lease)) as Granted;
  return { ...lease, fencingToken };
}

async function begun() {
  const { token, fencingToken } = await held();
  const attempt = { key: 'key', token, owner: 'me', fencingToken, lifeMs: 60_000 };
  const begin = { ...attempt, attempts: 3, keepMs: 60_000 };
  await store.once.begin(begin);
  return { attempt: { ...attempt, attempt: 1 }, begin };
}

const transferred = async (mode: HoldMode): Promise<() => Promise<unknown>> => {
  const { fencingToken: lastToken, ...lease } = await held(mode);
  return () => store.transfer({ ...lease, to: detachedToken('digest', mode), lastToken });
};

/** After a lost reply, the connection is often a new one. Of that one, WAIT counts the writes only, on Redis 8 and Valkey 9. */
const REQUESTS: readonly [string, () => Promise<() => Promise<unknown>>][] = [
  [
    'acquire',
    async () => {
      const lease = await held();
      return async () => (await store.acquire(lease)).status;
    },
  ],
  [
    'extend',
    async () => {
      const lease = await held();
      return () => store.extend([lease]);
    },
  ],
  ['transfer', () => transferred('exclusive')],
  ['transfer of a lease with a limit', () => transferred('limit:2')],
  [
    'begin of once-only work',
    async () => {
      const { begin } = await begun();
      return () => store.once.begin(begin);
    },
  ],
  [
    'keep of once-only work',
    async () => {
      const { attempt } = await begun();
      return () => store.once.keep(attempt);
    },
  ],
  [
    'finish of once-only work',
    async () => {
      const { attempt } = await begun();
      return () => store.once.finish({ ...attempt, end: 'done', text: '1' });
    },
  ],
  [
    'raise of a fence on a Cluster',
    async () => {
      const { token, fencingToken } = await held();
      const call = encoded(raiseFenceScript, {
        ...{ names: [keyNames('lock:')('key')], token, fencingToken: fencingToken + 5 },
        ...{ ttlMs: 30_000, fenceKeepMs: 600_000, lineMode: 'cluster' },
      });
      return () => scripts.run(raiseFenceScript, call);
    },
  ],
  [
    'commands under a lock',
    async () => {
      const lease = await held();
      const commands: WriteRequest['commands'] = [['SADD', 'set', 'member']];
      return async () => (await store.write({ ...lease, commands })).status;
    },
  ],
  ['a limit', () => Promise.resolve(() => store.setLimit('key', 2))],
  ['no limit', () => Promise.resolve(() => store.setLimit('key', undefined))],
];

describe('a request that comes again writes again, so that replicas can confirm it:', () => {
  it.each(REQUESTS)('%s', async (_what, prepare) => {
    const ask = await prepare();
    const answer = await ask();
    const before = await written();
    expect(await ask()).toEqual(answer);
    expect(await written()).toBeGreaterThan(before);
  });
});
