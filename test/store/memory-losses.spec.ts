import { describe, expect, it } from '@jest/globals';
import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';
import { newOwnerToken, type HoldMode } from '../../lib/store/owner-token.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

const GRANTED = { status: 'granted' };

/** What a renewal hears whose lease is gone, while the key is held in these modes by others. */
async function lossOf(mine: HoldMode, ...theirs: readonly HoldMode[]): Promise<unknown> {
  const runtime = new VirtualRuntime();
  const store = new MemoryLockStore(runtime);
  const lease = (mode: HoldMode) => ({
    ...{ keys: ['key'], token: newOwnerToken(runtime, { mode }), ttlMs: 1_000 },
    ...{ fencingToken: 1, validForMs: 1_000 },
  });
  const lost = lease(mine);
  await store.acquire(lost);
  await store.release(lost);
  for (const mode of theirs) expect(await store.acquire(lease(mode))).toMatchObject(GRANTED);
  const [outcome] = await store.extend([lost]);
  return outcome;
}

describe('a renewal in memory, of a lease that is gone,', () => {
  it.each<[HoldMode, HoldMode | undefined, string]>([
    ['exclusive', undefined, 'released-elsewhere'],
    ['exclusive', 'exclusive', 'stolen'],
    ['exclusive', 'shared', 'stolen'],
    ['shared', 'exclusive', 'stolen'],
    ['shared', 'limit:2', 'stolen'],
    ['shared', 'shared', 'released-elsewhere'],
    ['limit:2', 'limit:2', 'released-elsewhere'],
    ['limit:3', 'limit:2', 'released-elsewhere'],
  ])(
    'as %s, where it is held as %s, says %s: who holds it together excludes nobody of them',
    async (mine, theirs, reason) => {
      const others = theirs === undefined ? [] : [theirs];
      expect(await lossOf(mine, ...others)).toEqual({ status: 'lost', reason });
    },
  );

  it('says so, too, where a caller with another limit has joined them', async () => {
    expect(await lossOf('limit:2', 'limit:2', 'limit:3')).toEqual({
      ...{ status: 'lost', reason: 'released-elsewhere' },
    });
  });
});
