import { describe, expect, it } from '@jest/globals';
import { Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LockModule } from 'nestjs-holdfast';
import { LockAdmin, LockAdminModule } from 'nestjs-holdfast/admin';
import type { LockEngine } from '../../lib/engine/lock-engine.js';
import type { AdminStore, FoundKey } from '../../lib/store/admin-store.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

const OUTAGE = new Error('outage');
const PRESENTED = new Error('presented');

/** An admin over a store that answers what the test says. */
function adminOver(store: Partial<AdminStore>): LockAdmin {
  const presence = {
    ask: async () => new Map(),
    afterAsking: (instances: readonly unknown[]) => instances,
  };
  const interventions = {
    end: async (targets: readonly unknown[]) => targets.map(() => ({ status: 'ended' })),
  };
  const present = (error: unknown): unknown => (error === OUTAGE ? PRESENTED : error);
  return new LockAdmin({
    administered: {
      ...{ store: { admin: store }, presence, interventions, present },
      runtime: new VirtualRuntime(),
    },
    checked: (check: () => unknown) => check(),
    presented: async (answer: Promise<unknown>) =>
      answer.catch((error: unknown) => {
        throw present(error);
      }),
    needsRedis: () => undefined,
  } as unknown as LockEngine);
}

const heldKey = (key: string): FoundKey => ({
  key,
  line: [],
  holders: [{ token: 'theirs', remainingMs: 1_000 }],
});
const noteAt = (at: number, keys: readonly string[] = ['a']): string =>
  JSON.stringify({ id: at, at, action: 'release', keys, by: 'ada', reason: 'stuck' });

async function* pages(...all: (readonly string[])[]): AsyncGenerator<readonly string[]> {
  yield* all;
}

async function keysIn(list: AsyncIterable<{ readonly key: string }>): Promise<readonly string[]> {
  const keys: string[] = [];
  for await (const { key } of list) keys.push(key);
  return keys;
}

describe('LockAdmin', () => {
  it('is provided by its module, for the lock service of the name', async () => {
    const uses = { provide: 'uses', useFactory: (given: unknown) => given, inject: [LockAdmin] };
    @Module({ imports: [LockAdminModule.forRoot({ name: 'jobs' })], providers: [uses] })
    class Operations {}
    const imports = [LockModule.forRoot({ store: 'memory', name: 'jobs' }), Operations];
    const app = await Test.createTestingModule({ imports }).compile();
    await app.init();
    const admin = app.get<LockAdmin>('uses', { strict: false });
    expect(admin).toBeInstanceOf(LockAdmin);
    expect(await keysIn(admin.list())).toEqual([]);
    await app.close();
  });

  it('looks at each key once, a hundred at a time', async () => {
    const keys = Array.from({ length: 150 }, (_, index) => `k${String(index)}`);
    const looks: number[] = [];
    const admin = adminOver({
      instances: async () => [],
      keys: () => pages(keys, [...keys.slice(0, 7), 'last', 'last']),
      look: async (some) => {
        looks.push(some.length);
        return some.map(heldKey);
      },
    });
    expect(await keysIn(admin.list())).toEqual([...keys, 'last']);
    expect(looks).toEqual([100, 50, 1]);
    looks.length = 0;
    expect(await keysIn(admin.list({ limit: 3 }))).toEqual(keys.slice(0, 3));
    expect(looks).toEqual([100]);
  });

  it('asks the store for no empty page', async () => {
    const looks: number[] = [];
    const look = async (some: readonly string[]): Promise<readonly FoundKey[]> => {
      looks.push(some.length);
      return some.map(heldKey);
    };
    const hundred = Array.from({ length: 100 }, (_, index) => `k${String(index)}`);
    const admin = adminOver({ instances: async () => [], keys: () => pages([], hundred), look });
    expect(await keysIn(admin.list())).toHaveLength(100);
    expect(looks).toEqual([100]);
  });

  it('presents the errors of the store as the application wants them', async () => {
    const fails = async (): Promise<never> => Promise.reject(OUTAGE);
    const failing = adminOver({ instances: async () => [], keys: () => pages(['a']), look: fails });
    await expect(keysIn(failing.list())).rejects.toBe(PRESENTED);
    await expect(failing.describe('a')).rejects.toBe(PRESENTED);
    await expect(adminOver({ instances: fails }).instances()).rejects.toBe(PRESENTED);
  });

  it('knows nothing of a key of which the store knows nothing', async () => {
    const nothing = { instances: async () => [], look: async () => [], notes: async () => [] };
    expect(await adminOver(nothing).describe('a')).toStrictEqual({
      key: 'a',
      state: 'free',
      holders: [],
      line: [],
      unresponsive: [],
      history: [],
      audit: [],
    });
  });

  it('reads the audit log, in the order of the store, as much of it as is wanted', async () => {
    const counts: number[] = [];
    // The clocks of operators differ.
    const times = Array.from({ length: 30 }, (_, index) => (index * 7) % 30);
    const admin = adminOver({
      instances: async () => [],
      look: async ([key = '']) => [heldKey(key)],
      notes: async (count) => {
        counts.push(count);
        return [noteAt(99, ['other']), 'none', ...times.map((time) => noteAt(time))];
      },
    });
    const timesIn = (entries: readonly { readonly at: Date }[]) =>
      entries.map(({ at }) => at.getTime());
    expect(timesIn(await admin.audit(3))).toEqual([99, 0, 7]);
    expect(await admin.audit()).toHaveLength(31);
    expect(timesIn((await admin.describe('a')).audit)).toEqual(times.slice(0, 20));
    expect(counts).toEqual([1_000, 1_000, 200]);
  });

  it('frees the keys of an instance, in alphabetical order', async () => {
    const noted: string[] = [];
    const ofIt = { token: 'holdfast:one.token', remainingMs: 1_000 };
    const admin = adminOver({
      keys: () => pages(['b', 'a', 'c']),
      look: async (some) =>
        some.map((key) => (key === 'c' ? heldKey(key) : { ...heldKey(key), holders: [ofIt] })),
      note: async (note) => void noted.push(note),
    });
    const outcome = await admin.releaseInstance({ id: 'one' }, { reason: 'stuck' });
    expect(outcome).toEqual({ status: 'done', keys: ['a', 'b'] });
    expect(noted.map((note) => (JSON.parse(note) as { keys: unknown }).keys)).toEqual([['a', 'b']]);
  });

  it('notes nothing where an instance holds nothing', async () => {
    const noted: string[] = [];
    const admin = adminOver({
      keys: () => pages(['a']),
      look: async () => [heldKey('a')],
      note: async (note) => void noted.push(note),
    });
    const outcome = await admin.releaseInstance({ id: 'nobody' }, { reason: 'stuck' });
    expect(outcome).toEqual({ status: 'nothing' });
    expect(noted).toEqual([]);
  });
});
