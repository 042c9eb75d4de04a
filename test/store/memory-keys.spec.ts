import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { BriefMap } from '../../lib/collections/brief-map.js';
import type { Granted } from '../../lib/store/lock-store.js';
import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';
import { newOwnerToken, type HoldMode } from '../../lib/store/owner-token.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

/** Many more than the table keeps of keys that are not used. */
const MANY = 20_000;

let runtime: VirtualRuntime;
let store: MemoryLockStore;

beforeEach(() => {
  runtime = new VirtualRuntime();
  store = new MemoryLockStore(runtime);
});

afterEach(() => {
  jest.restoreAllMocks();
});

const lease = (key: string, mode: HoldMode = 'exclusive') => ({
  ...{ keys: [key], token: newOwnerToken(runtime, { mode }), ttlMs: 60_000 },
  ...{ fencingToken: 1, validForMs: 60_000 },
});

async function held(key: string, mode?: HoldMode) {
  const request = lease(key, mode);
  const { fencingToken } = (await store.acquire(request)) as Granted;
  return { ...request, fencingToken };
}

describe('a store in memory', () => {
  it('forgets the keys that are no longer used, and no others', async () => {
    const set = jest.spyOn(BriefMap.prototype, 'set');
    const kept = await held('held');
    await store.setLimit('limited', 1);
    const table = set.mock.contexts[0] as BriefMap<string, unknown>;
    set.mockRestore();
    for (let count = 0; count < MANY; count += 1) {
      await store.release(await held(`key:${String(count)}`));
    }
    expect(table.size).toBeLessThan(MANY / 8);
    expect(await store.extend([kept])).toEqual([{ status: 'extended' }]);
    await held('limited', 'limit:2');
    expect(await store.acquire(lease('limited', 'limit:2'))).toMatchObject({ status: 'held' });
  });
});

describe('those who hold a key of a store in memory together', () => {
  it('have one fencing token, also after one of them has left, until all have', async () => {
    const [first, second] = [await held('key', 'shared'), await held('key', 'shared')];
    await store.release(first);
    const third = await held('key', 'shared');
    expect([second.fencingToken, third.fencingToken]).toEqual(Array(2).fill(first.fencingToken));
    for (const each of [second, third]) await store.release(each);
    expect((await held('key', 'shared')).fencingToken).toBeGreaterThan(first.fencingToken);
  });
});
