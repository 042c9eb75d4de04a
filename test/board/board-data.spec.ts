import { describe, expect, it } from '@jest/globals';
import type { LockAdmin } from '../../lib/admin/lock-admin.js';
import type { HotKey, InstanceInfo, LockSummary } from '../../lib/admin/lock-admin.types.js';
import { BoardData, contentOf } from '../../packages/board/lib/board-data.js';
import type { BoardHealth, BoardSnapshot, View } from '../../packages/board/lib/board.types.js';
import { MOST_KEYS } from '../../packages/board/lib/inventory.js';
import { LockStoreUnavailableError } from '../../lib/errors.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

const HEALTHY: BoardHealth = {
  nodes: [{ node: 'a:1', reachable: true, quarantinedForMs: 0 }],
  quorum: 1,
  hasQuorum: true,
};

const AT = new Date(Date.UTC(2030, 0, 1));

const ALL: View = { search: '', filter: 'all', sort: 'waiting', page: 1, instance: '' };

const ago = (ms: number): Date => new Date(AT.getTime() - ms);

const rowOf = (key: string, facts: Partial<LockSummary> = {}): LockSummary => ({
  ...{ key, state: 'held', holders: 1, leases: [{ leaseId: 'l', instanceId: 'well' }] },
  ...{ isUnresponsive: false, waiting: 0, waitingInstanceIds: [], ...facts },
});

/** A key of the instance that does not reply. */
const stuckRow = (key: string, waiting = 0): LockSummary =>
  rowOf(key, { leases: [{ leaseId: 'l', instanceId: 'silent' }], isUnresponsive: true, waiting });

const waitedFor = (key: string, waiting: number, ms: number): HotKey => ({
  ...{ key, waiting, waitedMs: ms, waits: 0, refusals: 0, since: ago(ms) },
});

/** It ended many locks. */
const ENTRY = { keys: Array.from({ length: 40_000 }, (_, index) => `k${String(index)}`) };

interface Answers {
  readonly rows?: readonly LockSummary[];
  readonly waiting?: readonly HotKey[];
  readonly instances?: readonly Partial<InstanceInfo>[];
  readonly health?: BoardHealth;
}

/** Data of an admin that answers as the test says, and what was asked of it. */
function stage(answers: Answers = {}) {
  const { rows = [], waiting = [], instances = [], health = HEALTHY } = answers;
  const asked: string[] = [];
  const clock = new VirtualRuntime();
  const state: { fails: unknown } = { fails: undefined };
  const give = <T>(what: string, value: T) => {
    asked.push(what);
    if (state.fails !== undefined) throw state.fails;
    return value;
  };
  const admin = {
    instances: async () => give('instances', instances),
    hot: async () => give('hot', { keys: [], waiting, callers: 7, hour: [], unresponsive: [] }),
    audit: async () => give('audit', [ENTRY]),
    describe: async (key: string) => give('describe', { key, audit: [ENTRY] }),
    async *list({ keys, limit = Infinity }: { keys?: readonly string[]; limit?: number }) {
      give(keys === undefined ? 'search' : `look ${keys.join()}`, undefined);
      let given = 0;
      for (const row of rows)
        if ((keys?.includes(row.key) ?? true) && (given += 1) <= limit) yield row;
    },
  } as unknown as LockAdmin;
  const data = new BoardData(admin, { health: async () => give('health', health) }, clock);
  const keysIn = async (view: Partial<View> = {}): Promise<readonly string[]> => {
    const { keys } = await data.snapshot({ ...ALL, ...view });
    return keys!.rows.map(({ key }) => key);
  };
  return { asked, clock, data, state, keysIn };
}

const SILENT = {
  ...{ id: 'silent', application: 'orders', host: 'web-3', pid: 7 },
  ...{ isUnresponsive: false, seenAt: ago(9_000) },
};

describe('the keys that the page shows', () => {
  const rows = [
    rowOf('c', { since: ago(1) }),
    rowOf('a', { since: ago(3), isDetached: true }),
    rowOf('b', { waiting: 1, waitingInstanceIds: ['x'], isLeader: true }),
    rowOf('d', { state: 'free', once: 'exhausted' }),
    rowOf('e', { state: 'free', once: 'failed' }),
    rowOf('f', { state: 'free', once: 'done' }),
    stuckRow('s'),
  ];

  it.each<[Partial<View>, string]>([
    [{}, 'bacdefs'],
    [{ sort: 'key' }, 'abcdefs'],
    [{ sort: 'since' }, 'acbdefs'],
    [{ search: 'c' }, 'c'],
    [{ filter: 'waited-for' }, 'b'],
    [{ filter: 'unresponsive' }, 's'],
    [{ filter: 'detached' }, 'a'],
    [{ filter: 'once-failed' }, 'de'],
    [{ filter: 'leaders' }, 'b'],
    [{ instance: 'silent' }, 's'],
    [{ instance: 'x' }, 'b'],
    [{ instance: 'nobody' }, ''],
  ])('are, of %j, %s', async (view, keys) => {
    const { keysIn } = stage({ rows, instances: [SILENT] });
    expect((await keysIn(view)).join('')).toBe(keys);
  });

  it('are 50 a page, and the last page for one that is not there', async () => {
    const many = Array.from({ length: 101 }, (_, index) => rowOf(String(1_000 + index)));
    const { data, keysIn } = stage({ rows: many });
    expect(await keysIn()).toEqual(many.slice(0, 50).map(({ key }) => key));
    expect(await keysIn({ page: 3 })).toEqual(['1100']);
    expect((await data.snapshot({ ...ALL, page: 9 })).keys).toMatchObject({
      ...{ page: 3, pages: 3, found: 101, held: 101, callers: 7, more: false },
    });
  });

  it('say when there are more than were read', async () => {
    const { data } = stage({
      rows: Array.from({ length: MOST_KEYS + 1 }, (_, i) => rowOf(String(i))),
    });
    expect((await data.snapshot(ALL)).keys).toMatchObject({ more: true, found: MOST_KEYS });
  });
});

describe('what the page shows first', () => {
  it('is what a silent process holds and others wait for, then long waits, then the rest of it', async () => {
    const { data } = stage({
      rows: [
        ...[stuckRow('idle'), rowOf('slow'), rowOf('slower'), rowOf('quick'), rowOf('free')],
        stuckRow('blocked'),
      ],
      waiting: [
        ...[waitedFor('slower', 1, 9_000), waitedFor('slow', 2, 5_000)],
        ...[waitedFor('quick', 3, 4_999), waitedFor('blocked', 1, 1)],
      ],
      instances: [SILENT],
    });
    const { attention } = await data.snapshot(ALL);
    expect(attention.map(({ key }) => key)).toEqual(['blocked', 'slower', 'slow', 'idle']);
    expect(attention[0]).toMatchObject({ isUnresponsive: true, callers: 1, waitingSince: ago(1) });
  });
});

describe('the status that the page shows', () => {
  const statusWith = async (answers: Answers): Promise<BoardSnapshot['status']> =>
    (await stage(answers).data.snapshot(ALL)).status;
  const node = { node: 'a:1', reachable: true, quarantinedForMs: 0 };

  it('is that locks are granted', async () => {
    expect(await statusWith({})).toEqual({ level: 'good', text: 'Locks are granted', details: [] });
    const warning = 'They are in memory.';
    expect(await statusWith({ health: { ...HEALTHY, warning } })).toMatchObject({
      ...{ level: 'warning', details: [warning] },
    });
  });

  it('names what keeps them from being granted, since when, what to do and where to read on', async () => {
    const full = { ...node, problem: 'OOM command', remedy: 'Free memory.', since: ago(60_000) };
    expect(await statusWith({ health: { nodes: [full], quorum: 1, hasQuorum: false } })).toEqual({
      ...{ level: 'bad', text: 'Locks are refused', since: ago(60_000) },
      ...{ details: ['a:1: OOM command', 'Free memory.'], section: 'memory-is-full' },
    });
    const before = { ...full, since: ago(90_000) };
    const health = { nodes: [full, node, before, node, node], quorum: 3, hasQuorum: true };
    expect(await statusWith({ health })).toMatchObject({
      ...{ level: 'warning', text: 'Locks are granted, without 2 of 5 Redis servers' },
      since: before.since,
    });
  });

  it.each([
    ['NOPERM this user', 'a-right-is-missing'],
    ['is a replica: give its master', 'after-a-fail-over'],
    ['connect ECONNREFUSED', 'everything-answers-503'],
  ])('for "%s" leads to the section %s', async (problem, section) => {
    const health = { nodes: [{ ...node, problem }], quorum: 1, hasQuorum: false };
    expect(await statusWith({ health })).toMatchObject({ section });
  });

  it('tells how long a server is in quarantine', async () => {
    const nodes = [{ ...node, quarantinedForMs: 1_001 }];
    expect(await statusWith({ health: { nodes, quorum: 1, hasQuorum: false } })).toMatchObject({
      details: ['a:1: grants no locks for another 2 s: it may have forgotten some'],
      section: 'redis-lost-its-data',
    });
  });

  it('tells of processes that do not reply and hold something others may want', async () => {
    const silent = { ...SILENT, isUnresponsive: true };
    const late = { ...silent, id: 'late', seenAt: ago(90_000) };
    const lateRow = rowOf('b', {
      ...{ leases: [{ leaseId: 'l', instanceId: 'late' }], isUnresponsive: true },
    });
    expect(await statusWith({ rows: [lateRow], instances: [late] })).toMatchObject({
      ...{ level: 'warning', text: 'Locks are granted; orders on web-3, pid 7, does not reply' },
      ...{ since: late.seenAt, section: 'an-instance-is-frozen-or-dead' },
    });
    expect(await statusWith({ instances: [late] })).toMatchObject({ level: 'good' });
    const { data, clock } = stage({
      rows: [lateRow, stuckRow('a')],
      instances: [silent, late],
    });
    // It may be busy for a moment.
    expect((await data.snapshot(ALL)).unresponsive).toEqual(['late']);
    clock.block(2_000);
    expect((await data.snapshot(ALL)).status).toMatchObject({
      ...{ text: 'Locks are granted; 2 processes do not reply', since: late.seenAt },
    });
    expect((await data.key('free')).status.level).toBe('warning');
  });

  it('is what matters to locks, if the keys cannot be read', async () => {
    const { data, state, clock } = stage();
    await data.snapshot(ALL);
    clock.block(1_999);
    state.fails = new Error('NOPERM this user');
    expect((await data.snapshot(ALL)).status).toEqual({
      ...{ level: 'warning', text: 'Locks are granted; what is held is not known' },
      ...{ details: ['NOPERM this user'], section: 'a-right-is-missing' },
    });
  });

  it('of a replica is shown without what it may lack', async () => {
    const nodes = [{ ...node, problem: 'is a replica: give its master' }];
    const health = { nodes, quorum: 1, hasQuorum: false };
    const snapshot = await stage({ rows: [rowOf('a')], health }).data.snapshot(ALL);
    expect(snapshot).not.toHaveProperty('keys');
    expect(snapshot).not.toHaveProperty('instances');
  });
});

describe('what the page asks for', () => {
  const looksOf = async ({ asked, data }: ReturnType<typeof stage>): Promise<readonly string[]> => {
    asked.length = 0;
    await data.snapshot(ALL);
    return [...asked].sort();
  };

  it('is what is around the keys every 2 s, and all at once after a deed', async () => {
    const here = stage();
    const all = ['audit', 'health', 'hot', 'instances', 'look ', 'search'];
    expect(await looksOf(here)).toEqual(all);
    here.clock.block(1_999);
    expect(await looksOf(here)).toEqual(['search']);
    here.data.forget();
    expect(await looksOf(here)).toEqual(['audit', 'hot', 'instances', 'look ', 'search']);
    here.clock.block(2_000);
    expect(await looksOf(here)).toEqual(all);
  });

  it('is one search for all views, and none within a second', async () => {
    const { asked, data, clock } = stage({ rows: [rowOf('a')] });
    const searches = (): number => asked.filter((what) => what === 'search').length;
    await Promise.all(['a', 'b', 'c'].map((search) => data.snapshot({ ...ALL, search })));
    expect(searches()).toBe(1);
    clock.block(800);
    await data.snapshot(ALL);
    expect(searches()).toBe(1);
    clock.block(200);
    await data.snapshot(ALL);
    expect(searches()).toBe(2);
  });

  it('is one search more after a deed that a search may have missed', async () => {
    const { asked, data } = stage({ rows: [rowOf('a')] });
    const searches = (): number => asked.filter((what) => what === 'search').length;
    const looking = data.snapshot(ALL);
    data.forget();
    await looking;
    await data.snapshot(ALL);
    expect(searches()).toBe(2);
    await data.snapshot(ALL);
    expect(searches()).toBe(2);
  });

  it('is nothing that it still shows when the store does not answer', async () => {
    const facts = { operation: 'list', keys: ['order:42'], nodes: [] } as never;
    const outage = new LockStoreUnavailableError(facts);
    const { data, state, clock } = stage({ rows: [rowOf('a', { waiting: 3 })] });
    expect((await data.snapshot(ALL)).keys).toBeDefined();
    for (const [fails, why] of [
      [outage, outage.detail],
      [new Error('why'), 'why'],
      ['why not', 'why not'],
    ]) {
      clock.block(5_000);
      state.fails = fails;
      expect(await data.snapshot(ALL)).toEqual({
        ...{ at: new Date(clock.now().wallMs), attention: [], unresponsive: [] },
        status: {
          ...{ level: 'bad', text: 'It is not known whether locks are granted', details: [why] },
        },
      });
      expect(await data.key('a')).toMatchObject({ problem: why, status: { level: 'bad' } });
    }
    state.fails = undefined;
    clock.block(5_000);
    expect(await data.snapshot(ALL)).toMatchObject({ keys: {}, status: { level: 'good' } });
    expect(await data.key('a')).toMatchObject({ lock: { key: 'a' }, status: { level: 'good' } });
  });

  it('is not all that an intervention ended', async () => {
    const { data } = stage();
    const shown = { keys: ['k0', 'k1', 'k2'], others: 39_997 };
    expect((await data.snapshot(ALL)).audit).toEqual([shown]);
    expect((await data.key('a')).lock?.audit).toEqual([shown]);
  });

  it('is the same where only time has passed', async () => {
    const snapshot = await stage({ rows: [rowOf('a', { remainingMs: 5 })] }).data.snapshot(ALL);
    const [row] = snapshot.keys!.rows;
    const later = (facts: object) => ({
      ...snapshot,
      keys: { ...snapshot.keys!, at: new Date(1), rows: [{ ...row!, ...facts }] },
    });
    expect(contentOf(later({ remainingMs: 1 }))).toBe(contentOf(snapshot));
    expect(contentOf(later({ waiting: 1 }))).not.toBe(contentOf(snapshot));
  });
});
