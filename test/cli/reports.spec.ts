import { describe, expect, it } from '@jest/globals';
import type {
  AuditEntry,
  HotKeys,
  InstanceInfo,
  InterventionOutcome,
  LockDescription,
} from '../../lib/admin/lock-admin.types.js';
import { audit } from '../../packages/cli/lib/commands/audit.js';
import { releaseInstance } from '../../packages/cli/lib/commands/release-instance.js';
import { release } from '../../packages/cli/lib/commands/release.js';
import { show } from '../../packages/cli/lib/commands/show.js';
import { top } from '../../packages/cli/lib/commands/top.js';
import type { GivenOptions } from '../../packages/cli/lib/options.js';
import { HEAD, instance, NAME, NOW_MS, REASON, run } from './fake-admin.js';

describe('show', () => {
  const KEY = 'order:42';
  const FROZEN = instance({ isUnresponsive: true, seenAt: new Date(NOW_MS - 20_000) });
  const LOCK: LockDescription = {
    ...{ key: KEY, state: 'held', mode: 'exclusive', fencingToken: 17, unresponsive: [FROZEN] },
    history: [],
    holders: [
      {
        ...{ leaseId: '3f2a9c1d0e4b', instance: FROZEN, isForeign: false, isUnresponsive: true },
        ...{ remainingMs: 40_000, method: 'OrdersService.pay', template: 'order:<id>' },
      },
    ],
    line: [
      {
        ...{ position: 1, isUnresponsive: false, instance: instance({ host: 'web-4' }) },
        callers: [{ since: new Date(NOW_MS - 3_000), method: 'OrdersService.pay' }],
      },
    ],
    once: { state: 'failed', attempts: 2, error: 'a long text '.repeat(20).trim(), keptForMs: 1 },
    audit: [
      { ...{ at: new Date(NOW_MS), action: 'release', keys: [KEY], by: 'ada' }, reason: 'stuck' },
    ],
  };
  const linesAt = async (columns: number): Promise<readonly string[]> => {
    const admin = { describe: async () => LOCK };
    return (await run(show, admin, { word: KEY, columns })).stdout.split('\n');
  };
  const COMMAND = /^ {6}(ps|kill|nestjs-holdfast) /;
  const indentOf = (line: string): number => line.search(/\S/);

  it('is not wrapped in a pipe', async () => {
    const lines = await linesAt(Infinity);
    expect(lines).toContain(`  failed, 2 attempts, last error: ${LOCK.once?.error}`);
    expect(lines.filter((line) => COMMAND.test(line))).toEqual([
      '      ps -o stat=,lstart=,args= -p 4711',
      '      kill -9 4711',
      `      nestjs-holdfast release ${KEY} --if-holder 3f2a9c1d0e4b --reason '…'`,
    ]);
  });

  it('says which Redis it is, and nothing else beside the key', async () => {
    for (const known of [
      LOCK,
      { ...LOCK, holders: [], once: undefined },
      { ...LOCK, holders: [], line: [] },
    ]) {
      const admin = { describe: async () => known, instances: async () => [] };
      expect(await run(show, admin, { word: KEY })).toMatchObject({ code: 0, stderr: HEAD });
    }
  });

  it('looks for a key without the prefix only if it was given with one', async () => {
    const asked: string[] = [];
    const describeKey = async (key: string) => {
      asked.push(key);
      return { ...LOCK, key, state: 'free', holders: [], line: [], once: undefined };
    };
    for (const word of ['a', 'lock:', 'lock:a'])
      expect(await run(show, { describe: describeKey }, { word })).toMatchObject({
        ...{ code: 1, stderr: HEAD },
      });
    expect(asked).toEqual(['a', 'lock:', 'lock:a', 'a']);
  });

  it('counts the places of a limit, and the callers that it does not print', async () => {
    const callers = (length: number) => Array.from({ length }, () => ({ since: new Date(NOW_MS) }));
    const printed = async (length: number, mode = 'limit:3') => {
      const [holder] = LOCK.holders;
      const lock = {
        ...{ ...LOCK, mode, holders: [{ ...holder, places: 2 }, holder] },
        line: [{ ...LOCK.line[0], since: new Date(NOW_MS - 1_000), callers: callers(length) }],
      };
      return (await run(show, { describe: async () => lock }, { word: KEY })).stdout;
    };
    expect(await printed(10)).toContain('held, limit:3, 3 places in use, last');
    expect(await printed(10, 'shared')).toContain('held, shared, last');
    expect(await printed(10)).toMatch(/\n {2}1\. orders .*, since 2029-12-31 23:59:59 UTC\n/);
    expect((await printed(10)).match(/a call by hand/g)).toHaveLength(10);
    expect(await printed(10)).not.toContain('more\n');
    expect(await printed(11)).toContain('\n     and 1 caller more\n');
  });

  it.each([30, 60, 80])('fits %d columns, and keeps indentations and commands', async (columns) => {
    const [wide, narrow] = [await linesAt(Infinity), [...(await linesAt(columns))]];
    for (const line of narrow)
      if (!COMMAND.test(line)) expect(line.length).toBeLessThanOrEqual(columns);
    expect(narrow.join('\n')).toContain('unresponsive');
    for (const line of wide) {
      let whole = narrow.shift() ?? '';
      const indent = indentOf(whole);
      expect(indent).toBe(indentOf(line));
      while (whole.length < line.length) {
        const next = narrow.shift() ?? '';
        expect(indentOf(next)).toBe(indent + 2);
        whole += ` ${next.trimStart()}`;
      }
      expect(whole).toBe(line);
    }
    expect(narrow).toEqual([]);
  });
});

describe('release', () => {
  type Holder = LockDescription['holders'][number];
  const holder = (facts: Partial<Holder> = {}): Holder => ({
    leaseId: '3f2a9c1d0e4b',
    instance: instance(),
    isForeign: false,
    isUnresponsive: false,
    remainingMs: 1_000,
    ...facts,
  });
  const unresponsive = holder({ isUnresponsive: true });
  const waiter = (position: number, facts: object = {}) => ({
    position,
    isUnresponsive: false,
    ...facts,
  });
  const described = (facts: Partial<LockDescription> = {}): LockDescription => ({
    ...{ key: 'a', state: 'held', mode: 'exclusive', holders: [holder()], line: [] },
    ...{ unresponsive: [], history: [], audit: [], ...facts },
  });
  const DONE = { status: 'done', keys: ['a'] } as const;
  const NAMED = { json: true, yes: true, 'if-holder': '3f2a9c1d0e4b' };
  const released = async (
    lock: LockDescription,
    options: GivenOptions = {},
    outcome: InterventionOutcome<LockDescription> = DONE,
  ) => {
    const asked: unknown[] = [];
    const admin = {
      describe: async () => lock,
      release: async (...args: unknown[]) => {
        asked.push(args);
        return outcome;
      },
    };
    const settings = { options: { ...REASON, ...options }, word: 'a', answers: ['y'] };
    return { ...(await run(release, admin, settings)), asked };
  };

  it.each([
    ['. No caller waits for it.', []],
    ['. The first of 2 waiting callers gets it.', [waiter(1), waiter(2)]],
    ['. The first of 1 waiting caller gets it.', [waiter(1)]],
    [
      '. The first of 2 waiting callers whose process is alive gets it: 1 process is unresponsive.',
      [waiter(1, { isUnresponsive: true }), waiter(2)],
    ],
    [
      '. The first of 3 waiting callers whose process is alive gets it: 2 processes are unresponsive.',
      [waiter(1, { isUnresponsive: true }), waiter(2), waiter(3, { isUnresponsive: true })],
    ],
    [
      '. Every process of its 1 waiting caller is unresponsive. If they are dead, it stays free until the next call: see "show a".',
      [waiter(1, { isUnresponsive: true })],
    ],
  ])('says what follows%s', async (consequence, line) => {
    const lock = described({ line });
    const { code, stdout, asked } = await released(lock);
    expect({ code, stdout, asked }).toEqual({
      code: 0,
      stdout: `Released a${consequence}\n`,
      asked: [[lock, REASON]],
    });
  });

  it('warns of holders that are unresponsive, and asks about those that did', async () => {
    const alive = await released(described());
    expect(alive.questions).toEqual([
      `${NAME} replies, so its work may be running: the work has to stop at its signal.\nRelease a? [y/N] `,
    ]);
    expect(alive.stderr.endsWith('\n\n')).toBe(true);
    const frozen = await released(described({ holders: [unresponsive] }));
    expect(frozen.questions).toEqual(['Release a? [y/N] ']);
    expect(frozen.stderr.split(`${NAME} is unresponsive.\n`)[1]).toBe(
      [
        ...['On web-3, look at the process:', '  ps -o stat=,lstart=,args= -p 4711'],
        ...['T or D: it is stopped. Kill it, because its work may continue otherwise:'],
        ...['  kill -9 4711'],
        'R or S: it is busy or cut off. Do not kill it. Its work may continue until its signal aborts: check what it did.',
        ...['Nothing, or Z: it is dead.', ''],
      ].join('\n'),
    );
    const { instance: _, ...nameless } = unresponsive;
    const unknown = await released(described({ holders: [nameless] }));
    expect(unknown.questions).toEqual(['Release a? [y/N] ']);
    expect(unknown.stderr).not.toContain('T or D');
  });

  it('says so where there was no holder, or none any more', async () => {
    for (const [lock, outcome] of [
      [described({ holders: [] }), DONE],
      [described(), { status: 'nothing' }],
    ] as const) {
      expect(await released(lock, {}, outcome)).toMatchObject({
        code: 1,
        stdout: 'a is free: it has no holder.\n',
      });
      const { stdout } = await released(lock, NAMED, outcome);
      expect(JSON.parse(stdout)).toEqual({ key: 'a', released: false });
    }
  });

  it('prints one document with --json', async () => {
    const { stdout, stderr } = await released(described(), NAMED);
    expect(JSON.parse(stdout)).toEqual({
      key: 'a',
      released: true,
      at: new Date(NOW_MS).toISOString(),
    });
    expect(stderr).toBe('');
  });

  it('acts on the holder that is named, and asks for its name where nobody is asked', async () => {
    const byName = async (name: string) => released(described(), { ...NAMED, 'if-holder': name });
    const [first, second] = ['3f2a9c1d0e4b', 'ffffffffffff'];
    expect((await byName(`${first}:17, ${second}`)).asked).toEqual([
      [{ key: 'a', holders: [{ leaseId: first, fencingToken: 17 }, { leaseId: second }] }, REASON],
    ]);
    for (const wrong of ['a', '3f2a9c1d0e4b:x', 'holdfast:3f2a9c1d0e4b', ''])
      await expect(byName(wrong)).rejects.toThrow('Option --if-holder must be what');
    await expect(released(described(), { yes: true })).rejects.toThrow(
      '"release" with --yes needs --if-holder',
    );
  });

  it('shows who has the key when another holder does', async () => {
    const now = described({ holders: [holder({ instance: instance({ host: 'web-9' }) })] });
    const refused = { status: 'refused', now } as const;
    const shown = await released(described(), {}, refused);
    expect(shown).toMatchObject({ code: 8, stdout: '' });
    expect(shown.stderr).toMatch(
      /Nothing was changed: another holder has a now\.\na {2}held, exclusive\n\nHeld by\n.* on web-9, /,
    );
    const { code, stdout } = await released(described(), NAMED, refused);
    expect([code, JSON.parse(stdout)]).toMatchObject([
      8,
      { key: 'a', released: false, now: { holders: [{ instance: { host: 'web-9' } }] } },
    ]);
  });
});

describe('release-instance', () => {
  const DEAD = instance({ isUnresponsive: true, seenAt: new Date(NOW_MS - 20_000) });
  const SEEN = { id: 'one', isUnresponsive: true };
  const STEPS = [
    ...['On web-3, look at the process:', '  ps -o stat=,lstart=,args= -p 4711'],
    ...['T or D: it is stopped. Kill it, and then release its keys:', '  kill -9 4711'],
    'R or S: it is busy or cut off. Do not kill it, and do not release its keys. If it stays so, its lease ends by itself, or it replies again.',
    ...['Nothing, or Z: it is dead. Release its keys.', ''],
  ].join('\n');
  const freed = async (
    keys: readonly string[],
    settings: {
      options?: GivenOptions;
      canAsk?: boolean;
      found?: readonly InstanceInfo[];
      outcome?: object;
    } = {},
  ) => {
    const {
      options = {},
      canAsk = true,
      found = [instance({ id: 'other' }), DEAD],
      outcome = keys.length === 0 ? { status: 'nothing' } : { status: 'done', keys },
    } = settings;
    const asked: unknown[] = [];
    const admin = {
      instances: async () => found,
      releaseInstance: async (...args: unknown[]) => {
        asked.push(args);
        return outcome;
      },
    };
    const given = { options: { ...REASON, ...options }, word: 'one', answers: ['y'], canAsk };
    return { ...(await run(releaseInstance, admin, given)), asked };
  };

  it('names the instance, and the keys', async () => {
    expect(await freed(['a', 'b'])).toEqual({
      code: 0,
      stdout: 'Released 2 keys:\n  a\n  b\n',
      stderr: `${HEAD}${STEPS}\n`,
      questions: [
        `${NAME} is unresponsive. It was last seen 20 s ago.\nRelease everything that it holds? [y/N] `,
      ],
      asked: [[SEEN, REASON]],
    });
    const nobody = await freed(['a'], { found: [] });
    expect(nobody.questions[0]).toBe(
      'No instance one has a record here; "instances" lists them.\nRelease what it may hold? [y/N] ',
    );
    expect(nobody.asked).toEqual([[SEEN, REASON]]);
  });

  it.each([
    ['replies, so its work runs', instance()],
    [
      'cannot be asked, and reported 5 s ago, so its work may run',
      instance({ isListening: false }),
    ],
  ])('refuses an instance that %s', async (why, now) => {
    const text = `Nothing was changed: ${NAME} ${why}. Stop the process instead, or release its keys one by one.\n`;
    for (const options of [{}, { yes: true }, { 'dry-run': true }]) {
      const refused = await freed(['a'], { found: [now], options });
      expect(refused).toMatchObject({ code: 8, stdout: '', stderr: HEAD + text, questions: [] });
      expect(refused.asked).toEqual([]);
    }
    const again = await freed([], { outcome: { status: 'refused', now } });
    expect(again).toMatchObject({ code: 8, stdout: '', stderr: expect.stringContaining(text) });
    const { code, stdout, stderr } = await freed([], { found: [now], options: { json: true } });
    expect([code, stderr]).toEqual([8, '']);
    expect(JSON.parse(stdout)).toMatchObject({ id: 'one', released: [], now: { id: 'one' } });
  });

  it('says that it held nothing', async () => {
    expect(await freed([])).toMatchObject({ code: 1, stdout: 'one holds nothing.\n' });
  });

  it('prints in a dry run what it would release', async () => {
    async function* all() {
      for (const key of ['b', 'a', 'c'])
        yield { key, leases: [{ instanceId: key === 'c' ? 'other' : 'one' }] };
    }
    const admin = { instances: async () => [DEAD], list: all };
    const options = { 'dry-run': true, json: true };
    const { code, stdout } = await run(releaseInstance, admin, { options, word: 'one' });
    expect([code, JSON.parse(stdout)]).toEqual([
      0,
      { id: 'one', released: [], keys: ['a', 'b'], dryRun: true },
    ]);
  });

  it('prints nothing in a dry run for an instance that has no record', async () => {
    const dry = { found: [], options: { 'dry-run': true } };
    expect(await freed([], dry)).toMatchObject({ code: 1, stdout: 'one holds nothing.\n' });
  });

  it('names what Redis did not confirm, before what could not be recorded', async () => {
    const outcome = { status: 'done', keys: ['a'], unconfirmed: ['b', 'c'] };
    const all = { ...outcome, notRecorded: 'OOM' };
    const text = 'Redis did not confirm the release of b, c\n';
    const { code, stderr } = await freed([], { outcome });
    expect([code, stderr.endsWith(`\n\n${text}`)]).toEqual([3, true]);
    const both = await freed([], { outcome: all });
    expect([both.code, both.stderr.split(text)[1]]).toEqual([
      3,
      'It was done, and the audit log could not be written: OOM\n',
    ]);
    const { stdout } = await freed([], { outcome: all, options: { json: true, yes: true } });
    expect(JSON.parse(stdout)).toEqual({
      ...{ id: 'one', released: ['a'], unconfirmed: ['b', 'c'], notRecorded: 'OOM' },
    });
  });

  it('prints one document with --json, and nothing else', async () => {
    const options = { json: true, yes: true };
    const [some, none] = [await freed(['a'], { options }), await freed([], { options })];
    expect([some.code, JSON.parse(some.stdout), some.stderr]).toEqual([
      0,
      { id: 'one', released: ['a'] },
      '',
    ]);
    expect([none.code, JSON.parse(none.stdout)]).toEqual([1, { id: 'one', released: [] }]);
  });

  it('needs a reason, and a terminal to ask at', async () => {
    const { code, stderr, asked } = await freed(['a'], { canAsk: false });
    expect(code).toBe(5);
    expect(stderr).toContain('"release-instance" asks before it acts');
    expect(asked).toEqual([]);
    await expect(freed(['a'], { options: { reason: undefined } })).rejects.toThrow(
      '"release-instance" needs --reason',
    );
  });
});

describe('audit', () => {
  const ENTRY: AuditEntry = {
    at: new Date(NOW_MS),
    action: 'release',
    keys: ['a', 'b'],
    by: 'ada',
    reason: 'stuck',
  };
  const shown = async (entries: readonly AuditEntry[], options: GivenOptions = {}) => {
    const limits: unknown[] = [];
    const admin = {
      audit: async (limit: number) => {
        limits.push(limit);
        return entries;
      },
    };
    return { ...(await run(audit, admin, { options })), limits };
  };

  it('is a table', async () => {
    expect(await shown([ENTRY, { ...ENTRY, by: 'bob\x1b' }])).toEqual({
      code: 0,
      stdout: [
        'WHEN                     WHAT     KEYS  BY         REASON',
        '2030-01-01 00:00:00 UTC  release  a, b  ada        stuck',
        '2030-01-01 00:00:00 UTC  release  a, b  bob\\u{1b}  stuck\n',
      ].join('\n'),
      stderr: HEAD,
      questions: [],
      limits: [20],
    });
    expect((await shown([ENTRY], { limit: '7' })).limits).toEqual([7]);
  });

  it('of nothing says so', async () => {
    expect(await shown([])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: `${HEAD}No operator has done anything here.\n`,
    });
  });

  it('prints one document with --json', async () => {
    const { stdout, stderr, limits } = await shown([ENTRY], { json: true });
    expect([JSON.parse(stdout), stderr, limits]).toEqual([
      [{ ...ENTRY, at: ENTRY.at.toISOString() }],
      '',
      [1_000],
    ]);
  });
});

describe('top', () => {
  const shown = async (hot: HotKeys, options: GivenOptions = {}) => {
    const limits: unknown[] = [];
    const admin = {
      hot: async (limit: number) => {
        limits.push(limit);
        return hot;
      },
    };
    return { ...(await run(top, admin, { options })), limits };
  };
  const WAITED = { key: 'a', waitedMs: 6_000, waits: 3, refusals: 0, waiting: 0 };

  it('is a table', async () => {
    const refused = { key: 'b', waitedMs: 0, waits: 0, refusals: 7, waiting: 0 };
    const hot = { waiting: [], callers: 0, hour: [], unresponsive: [] };
    expect(await shown({ keys: [WAITED, refused], ...hot })).toEqual({
      code: 0,
      stdout: [
        'KEY  WAITED  WAITS  EACH  REFUSED',
        'a       6 s      3   2 s',
        'b      0 ms      0              7\n',
      ].join('\n'),
      stderr: HEAD,
      questions: [],
      limits: [20],
    });
  });

  it('begins with the oldest waits that last, each key once, and counts them', async () => {
    const since = (ms: number): Date => new Date(NOW_MS - ms);
    const stuck = { ...WAITED, key: 'stuck', waitedMs: 0, waits: 0, waiting: 1 };
    const busy = { ...WAITED, key: 'busy', waitedMs: 600_000, waits: 4, waiting: 2 };
    const waiting = [
      { ...stuck, waitedMs: 252_000, since: since(252_000) },
      { ...busy, since: since(1_500) },
    ];
    const hot = { keys: [busy, WAITED], waiting, callers: 3, hour: [], unresponsive: [] };
    const lines = [
      'KEY    WAITING      OLDEST      WAITED  WAITS        EACH',
      'stuck        1  4 min 12 s  4 min 12 s      0  4 min 12 s',
      'busy         2         1 s      10 min      4  1 min 40 s',
      'a                                  6 s      3         2 s',
      '',
    ];
    expect((await shown(hot)).stdout.split('\n')).toEqual(lines);
    const some = (await shown(hot, { limit: '2' })).stdout.split('\n');
    expect(some.slice(1).map((line) => line.split(' ')[0])).toEqual(['stuck', 'busy', '']);
  });

  it('says whose share is missing', async () => {
    const unresponsive = [instance(), instance({ host: 'web-4' })];
    const { stdout } = await shown({ keys: [], waiting: [], callers: 0, hour: [], unresponsive });
    expect(stdout).toBe(
      'No caller waits, and none waited or was refused in the last 5 minutes.\n\n' +
        `The share of 2 unresponsive instances is missing: ${NAME}; orders 1.4.2 on web-4, pid 4711\n`,
    );
  });

  it('prints one document with --json', async () => {
    const hot = { keys: [WAITED], unresponsive: [] } as unknown as HotKeys;
    const { stdout, stderr, limits } = await shown(hot, { json: true, limit: '3' });
    expect([JSON.parse(stdout), stderr, limits]).toEqual([hot, '', [3]]);
  });
});
