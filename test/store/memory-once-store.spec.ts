import { beforeEach, describe, expect, it } from '@jest/globals';
import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';
import { newOwnerToken } from '../../lib/store/owner-token.js';
import type { AttemptEnd, OnceReference } from '../../lib/store/once-store.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

const LIFE_MS = 60_000;

let store: MemoryLockStore;
let token: string;

beforeEach(async () => {
  const runtime = new VirtualRuntime();
  store = new MemoryLockStore(runtime);
  token = newOwnerToken(runtime);
  await store.acquire({ keys: ['work'], token, ttlMs: LIFE_MS });
});

const tryOf = (owner: string): OnceReference => ({ key: 'work', token, owner, fencingToken: 1 });

const begin = (owner: string) =>
  store.once.begin({ ...tryOf(owner), attempts: 3, lifeMs: LIFE_MS, keepMs: LIFE_MS });

const finish = (owner: string, end: AttemptEnd) =>
  store.once.finish({ ...tryOf(owner), attempt: 1, end, lifeMs: LIFE_MS });

describe('work that is done once, in memory,', () => {
  it('begins once for a request that comes twice', async () => {
    expect(await begin('me')).toEqual({ status: 'begun', attempt: 1 });
    expect(await begin('me')).toEqual({ status: 'begun', attempt: 1 });
    expect(await begin('other')).toEqual({ status: 'begun', attempt: 2 });
  });

  it.each<AttemptEnd>(['failed', 'returned'])(
    'does not begin for a request that comes after the end of its attempt: %s',
    async (end) => {
      await begin('me');
      await finish('me', end);
      const attempts = end === 'returned' ? 0 : 1;
      expect(await begin('me')).toStrictEqual({ status: 'lost', attempts });
    },
  );

  it.each<[string, AttemptEnd, string]>([
    ['me', 'done', 'accepted'],
    ['me', 'failed', 'superseded'],
    ['other', 'done', 'superseded'],
  ])(
    'after its end as "done" by "me" answers %s that says "%s": %s',
    async (owner, end, status) => {
      await begin('me');
      expect(await finish('me', 'done')).toEqual({ status: 'accepted' });
      expect(await finish(owner, end)).toEqual({ status });
    },
  );
});
