import { describe, expect, it } from '@jest/globals';
import type { LockAdmin } from '../../lib/admin/lock-admin.js';
import type { LockSummary } from '../../lib/admin/lock-admin.types.js';
import { BoardData, contentOf, MOST_LOCKS } from '../../packages/board/lib/board-data.js';
import { LockStoreUnavailableError } from '../../lib/errors.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

const HEALTH = { nodes: [], quorum: 1, hasQuorum: true };

/** Data of an admin that answers as the test says, and what was asked of it. */
function stage(answers: { readonly keys?: readonly string[]; readonly fails?: unknown } = {}) {
  const { keys = [], fails } = answers;
  const asked: string[] = [];
  const clock = new VirtualRuntime();
  const give = <T>(what: string, value: T) => {
    asked.push(what);
    if (fails !== undefined) throw fails;
    return value;
  };
  const admin = {
    instances: async () => give('instances', ['instance']),
    hot: async (most: number) => give('hot', { most }),
    audit: async (most: number) => give('audit', [most]),
    describe: async (key: string) => give('describe', { key }),
    async *list({ prefix, limit }: { prefix: string; limit: number }) {
      give(`list ${prefix}`, undefined);
      for (const key of keys.slice(0, limit)) yield { key } as LockSummary;
    },
  } as unknown as LockAdmin;
  const source = { health: async () => give('health', HEALTH) };
  return { asked, clock, data: new BoardData(admin, source, clock) };
}

const namesOf = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `k${String((index * 7) % count).padStart(3, '0')}`);

describe('what the page shows of all keys', () => {
  it('is what is held, in alphabetical order, and what is around it', async () => {
    const { data, asked } = stage({ keys: ['b', 'a', 'c'] });
    expect(await data.snapshot('order:')).toEqual({
      ...{ at: new Date(Date.UTC(2030, 0, 1)), locks: [{ key: 'a' }, { key: 'b' }, { key: 'c' }] },
      ...{ more: false, instances: ['instance'], hot: { most: 10 }, audit: [20], health: HEALTH },
    });
    expect(asked).toContain('list order:');
  });

  it('is 200 keys, and whether there are more', async () => {
    for (const [count, more] of [
      [MOST_LOCKS - 1, false],
      [MOST_LOCKS, false],
      [MOST_LOCKS + 1, true],
    ] as const) {
      const { data } = stage({ keys: namesOf(count) });
      const snapshot = await data.snapshot('');
      expect([count, snapshot.more]).toEqual([count, more]);
      expect(snapshot.locks).toHaveLength(Math.min(count, MOST_LOCKS));
    }
  });

  it('asks for what is around them every 5 s, and at once after a deed', async () => {
    const { data, asked, clock } = stage();
    const looks = async (): Promise<readonly string[]> => {
      asked.length = 0;
      await data.snapshot('');
      return [...asked].sort();
    };
    const all = ['audit', 'health', 'hot', 'instances', 'list '];
    expect(await looks()).toEqual(all);
    clock.block(4_999);
    expect(await looks()).toEqual(['list ']);
    data.forget();
    expect(await looks()).toEqual(['audit', 'hot', 'instances', 'list ']);
    clock.block(5_000);
    expect(await looks()).toEqual(all);
  });

  it('says why the store cannot be asked', async () => {
    const facts = { operation: 'list', keys: ['order:42'], nodes: [] } as never;
    const outage = new LockStoreUnavailableError(facts);
    const { data } = stage({ fails: outage });
    const at = new Date(Date.UTC(2030, 0, 1));
    const nothing = { at, locks: [], more: false, health: undefined };
    expect(await data.snapshot('')).toEqual({ ...nothing, problem: outage.detail });
    expect(await data.key('a')).toEqual({ at, problem: outage.detail });
    for (const [fails, problem] of [
      [new Error('why'), 'why'],
      ['why not', 'why not'],
    ]) {
      const other = stage({ fails });
      expect(await other.data.snapshot('')).toMatchObject({ problem });
    }
    expect(await stage().data.key('a')).toEqual({ at, lock: { key: 'a' }, problem: undefined });
  });

  it('is the same where only time has passed', () => {
    const snapshot = { at: new Date(0), locks: [], more: false };
    const passing = { at: new Date(1), remainingMs: 1, latencyMs: 1, clockOffsetMs: 1 };
    expect(contentOf({ ...snapshot, ...passing })).toBe(contentOf(snapshot));
    const later = { seenAt: new Date(1), quarantinedForMs: 1 };
    expect(contentOf({ ...snapshot, ...later })).toBe(contentOf(snapshot));
    expect(contentOf({ ...snapshot, more: true })).not.toBe(contentOf(snapshot));
  });
});
