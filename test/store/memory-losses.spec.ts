import { describe, expect, it } from '@jest/globals';
import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';
import { newOwnerToken, type HoldMode } from '../../lib/store/owner-token.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

/** What a renewal hears whose lease is gone, while the key is held in a mode by somebody else. */
async function lossOf(mine: HoldMode, theirs: HoldMode | undefined): Promise<unknown> {
  const runtime = new VirtualRuntime();
  const store = new MemoryLockStore(runtime);
  const lease = (mode: HoldMode) => ({
    ...{ key: 'key', token: newOwnerToken(runtime, { mode }), ttlMs: 1_000 },
    ...{ fencingToken: 1, validForMs: 1_000 },
  });
  const [lost, other] = [lease(mine), lease(theirs ?? 'exclusive')];
  await store.acquire(lost);
  await store.release(lost);
  if (theirs !== undefined) await store.acquire(other);
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
  ])(
    'as %s, where it is held as %s, says %s: who holds it together excludes nobody of them',
    async (mine, theirs, reason) => {
      expect(await lossOf(mine, theirs)).toEqual({ status: 'lost', reason });
    },
  );
});
