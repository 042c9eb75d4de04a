import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { LockAdmin } from '../../lib/admin/lock-admin.js';
import { Interventions } from '../../lib/engine/interventions.js';
import type { LockEngine } from '../../lib/engine/lock-engine.js';
import { Locks } from '../support/locks.js';
import { RedisServer } from '../support/redis-server.js';

let servers: readonly RedisServer[];
let locks: Locks;

beforeAll(async () => {
  servers = await Promise.all([1, 2, 3].map(() => RedisServer.start()));
  locks = new Locks({ redis: servers.map(({ url }) => url) });
  await locks.open();
});

afterAll(async () => {
  await locks.shutdown(0);
  await Promise.all(servers.map((server) => server.stop()));
});

/** A holder that was told releases the lease at one master before the operator's release comes there. */
function withHolderFirst(master: RedisServer): LockEngine {
  const { store, presence, ...parts } = locks.administered;
  const release: typeof store.release = async (...args) => {
    await master.command('DEL', 'lock:order:42');
    return store.release(...args);
  };
  const racing = { ...store, admin: store.admin, release } as typeof store;
  const interventions = new Interventions(racing, presence);
  const administered = { ...parts, presence, interventions, store: racing };
  const { runtime } = locks;
  return {
    administered,
    runtime,
    checked: (check: () => unknown) => check(),
    presented: (answer: unknown) => answer,
    needsRedis: () => undefined,
  } as unknown as LockEngine;
}

describe('a release by force over three masters, one of them dead', () => {
  it('succeeds where the holder releases one of the others first', async () => {
    await servers[2]!.kill();
    await locks.acquire('order:42', { ttl: '60s', autoExtend: false });
    const admin = new LockAdmin(withHolderFirst(servers[1]!));
    const seen = await admin.describe('order:42');
    expect(await admin.release(seen, { reason: 'stuck' })).toMatchObject({ status: 'done' });
    expect(await locks.inspect('order:42')).toEqual({ held: false });
    expect(await admin.audit()).toMatchObject([{ keys: ['order:42'], reason: 'stuck' }]);
  });
});
