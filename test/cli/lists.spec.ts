import { describe, expect, it } from '@jest/globals';
import type { LockSummary } from '../../lib/admin/lock-admin.types.js';
import type { RunWithRedis } from '../../packages/cli/lib/command.js';
import { audit } from '../../packages/cli/lib/commands/audit.js';
import { forget } from '../../packages/cli/lib/commands/forget.js';
import { instances } from '../../packages/cli/lib/commands/instances.js';
import { list } from '../../packages/cli/lib/commands/list.js';
import { top } from '../../packages/cli/lib/commands/top.js';
import { watch } from '../../packages/cli/lib/commands/watch.js';
import type { GivenOptions } from '../../packages/cli/lib/options.js';
import { type FakeAdmin, HEAD, instance, NOW_MS, REASON, run } from './fake-admin.js';

const lock = (key: string, facts: Partial<LockSummary> = {}): LockSummary => ({
  ...{ key, state: 'held', holders: 1, leases: [], isUnresponsive: false },
  ...{ waiting: 0, waitingInstanceIds: [], ...facts },
});

/** What is listed, and how much of it was read. */
function listing(...locks: readonly LockSummary[]) {
  const read: string[] = [];
  async function* all(): AsyncGenerator<LockSummary> {
    for (const each of locks) {
      read.push(each.key);
      yield each;
    }
  }
  return { list: all, read };
}

const NOWHERE = { instances: async () => [] };
const QUESTION = 'No service reports here: another server, database or prefix?\n';
const QUIET = {
  ...{ hot: async () => ({ keys: [], waiting: [], callers: 0, hour: [], unresponsive: [] }) },
  ...{ audit: async () => [], ...listing() },
};

describe('where no service reports', () => {
  const entry = { at: new Date(NOW_MS), action: 'release', keys: ['a'], by: 'ada', reason: 'x' };
  const hot = { key: 'a', waitedMs: 1, waits: 1, refusals: 0, waiting: 0 };
  const SOME: FakeAdmin = {
    ...{ hot: async () => ({ keys: [hot], waiting: [], unresponsive: [] }) },
    ...{ audit: async () => [entry], ...listing(lock('a')) },
  };

  it.each<[string, RunWithRedis]>([
    ['list', list],
    ['watch', watch],
    ['top', top],
    ['audit', audit],
  ])('%s of something is all right', async (_, command) => {
    for (const options of [{}, { json: true }])
      expect(await run(command, { ...SOME, ...NOWHERE }, { options })).toMatchObject({
        code: 0,
        stderr: options.json === true ? '' : HEAD,
      });
  });

  it.each<[string, RunWithRedis, string, string]>([
    [
      ...(['list', list, 'Nothing is held, and no caller waits.\n'] as const),
      QUESTION.replace('No service reports here', '0 keys and 0 services here'),
    ],
    ['watch', watch, '', QUESTION],
    ['top', top, '', QUESTION],
    ['audit', audit, 'No operator has done anything here.\n', QUESTION],
    [
      ...(['instances', instances] as const),
      ...(['No service has described itself here within the last hour.\n', QUESTION] as const),
    ],
  ])('%s of nothing asks whether this is the place', async (_, command, text, question) => {
    const admin = { ...QUIET, ...NOWHERE };
    expect(await run(command, admin)).toMatchObject({ code: 1, stderr: HEAD + text + question });
    expect(await run(command, admin, { options: { json: true } })).toMatchObject({
      ...{ code: 1, stderr: question },
    });
  });
});

describe('list', () => {
  it('prints work that failed, or has no attempt left', async () => {
    const all = [
      ...(['running', 'failed', 'done', 'exhausted'] as const).map((once) => lock(once, { once })),
      lock('none'),
    ];
    const { stdout } = await run(list, listing(...all), { options: { failed: true, json: true } });
    expect((JSON.parse(stdout) as LockSummary[]).map(({ key }) => key)).toEqual([
      ...['failed', 'exhausted'],
    ]);
  });

  it('reads ten thousand keys for a table, and all for JSON', async () => {
    const keys = Array.from({ length: 10_001 }, (_, index) => lock(String(index)));
    const table = listing(...keys);
    const { stderr } = await run(list, table, { options: { limit: '2' } });
    expect(stderr).toContain('2 of 10000 keys or more, those with the longest lines.');
    expect(table.read).toHaveLength(10_000);
    const json = listing(...keys);
    await run(list, json, { options: { json: true, sort: 'key' } });
    expect(json.read).toHaveLength(10_001);
  });
});

describe('watch', () => {
  const shown = async (...locks: readonly LockSummary[]) =>
    (await run(watch, listing(...locks))).stdout.split('\n');

  it('has a line above the table, which sums up', async () => {
    const [title, head, ...rows] = await shown(
      ...[lock('a', { waiting: 2 }), lock('b', { waiting: 1 }), lock('c')],
    );
    expect(title).toBe('2030-01-01 00:00:00 UTC  3 keys, 3 processes wait');
    expect(head).toMatch(/^STATE +KEY +LINE/);
    expect(rows).toHaveLength(4);
    expect((await shown(lock('a', { waiting: 1 })))[0]).toMatch(/ 1 key, 1 process waits$/);
  });

  it('has no table of nothing', async () => {
    expect(await shown()).toEqual(['2030-01-01 00:00:00 UTC  0 keys, 0 processes wait', '']);
  });
});

describe('instances', () => {
  const found = async (all: readonly object[], options: GivenOptions = {}) =>
    run(instances, { instances: async () => all }, { options });

  it('is a table', async () => {
    const audits = instance({ id: 'two', service: 'audit', isUnresponsive: true });
    expect(await found([instance(), audits])).toEqual({
      code: 0,
      stdout: [
        'STATE         ID   APPLICATION  HOST    PID     SEEN  VERSION  SERVICE  STARTED',
        'reports       one  orders       web-3  4711  5 s ago  1.4.2             2029-12-31 23:59:00 UTC',
        'unresponsive  two  orders       web-3  4711  5 s ago  1.4.2    audit    2029-12-31 23:59:00 UTC\n',
      ].join('\n'),
      stderr: HEAD,
      questions: [],
    });
  });

  it('may be limited, and of those that are unresponsive', async () => {
    const ids = async (options: GivenOptions) => {
      const all = [instance(), instance({ id: 'two', isUnresponsive: true }), instance()];
      const { stdout } = await found(all, { ...options, json: true });
      return (JSON.parse(stdout) as { id: string }[]).map(({ id }) => id);
    };
    expect(await ids({})).toEqual(['one', 'two', 'one']);
    expect(await ids({ limit: '2' })).toEqual(['one', 'two']);
    expect(await ids({ unresponsive: true })).toEqual(['two']);
    expect(await found([instance()], { unresponsive: true })).toMatchObject({
      ...{ code: 0, stdout: '', stderr: `${HEAD}None of 1 service is unresponsive.\n` },
    });
  });
});

describe('forget', () => {
  const ONCE = { state: 'failed', attempts: 2, keptForMs: 1_000 };
  const forgotten = async (
    settings: {
      readonly options?: GivenOptions;
      readonly once?: object | undefined;
      readonly outcome?: object;
      readonly canAsk?: boolean;
      readonly answer?: string;
    } = {},
  ) => {
    const { options = {}, outcome = { status: 'done', keys: ['a'] }, canAsk = true } = settings;
    const asked: unknown[] = [];
    const seen = {
      key: 'a',
      holders: [],
      line: [],
      once: 'once' in settings ? settings.once : ONCE,
    };
    const admin = {
      describe: async () => seen,
      forgetOnce: async (...args: unknown[]) => {
        asked.push(args);
        return outcome;
      },
    };
    const given = { options: { ...REASON, ...options }, word: 'a', canAsk };
    const answers = [settings.answer ?? 'y'];
    return { ...(await run(forget, admin, { ...given, answers })), asked, seen };
  };
  const PLAN = 'The work of a is failed after 2 attempts. Forget that, so that it is done again?';
  const JSON_ONLY = { json: true, yes: true };

  it('asks, forgets and says what follows', async () => {
    const { asked, seen, ...printed } = await forgotten({ options: { by: 'ada' } });
    expect(printed).toEqual({
      code: 0,
      stdout: 'Forgotten a. The next caller does the work.\n',
      stderr: HEAD,
      questions: [`${PLAN} [y/N] `],
    });
    expect(asked).toEqual([[seen, { ...REASON, by: 'ada' }]]);
  });

  it.each(['y', 'Y', ' yes ', 'YES\t'])('takes %j for yes', async (answer) => {
    expect((await forgotten({ answer })).code).toBe(0);
  });

  it.each(['', 'n', 'no', 'yesterday', 'yes please', 'any', 'ok yes'])(
    'takes %j for no',
    async (answer) => {
      expect(await forgotten({ answer })).toMatchObject({
        ...{ code: 5, stdout: '', stderr: `${HEAD}Nothing was changed.\n`, asked: [] },
      });
    },
  );

  it('needs a reason, and a terminal to ask at', async () => {
    await expect(forgotten({ options: { reason: undefined } })).rejects.toThrow(
      '"forget" needs --reason',
    );
    expect(await forgotten({ canAsk: false })).toMatchObject({
      ...{ code: 5, stdout: '', asked: [] },
      stderr:
        '"forget" asks before it acts, and this is no terminal. Nothing was changed. Give --yes to act without a question.\n',
    });
  });

  it('changes nothing in a dry run', async () => {
    expect(await forgotten({ options: { 'dry-run': true } })).toMatchObject({
      ...{ code: 0, stdout: `${PLAN}\n`, asked: [], questions: [] },
      stderr: `${HEAD}Dry run: nothing was changed.\n`,
    });
  });

  it.each([
    [{ once: { state: 'running', attempts: 1 } }, 'running after 1 attempt'],
    [{ once: { state: 'done', attempts: 3 } }, 'done after 3 attempts'],
    [{}, 'unknown after 0 attempts'],
  ])('changes nothing where the work is another by now: %j', async (now, state) => {
    const outcome = { status: 'refused', now: { key: 'a', ...now } };
    expect(await forgotten({ outcome })).toMatchObject({
      ...{ code: 8, stdout: '' },
      stderr: `${HEAD}Nothing was changed: the work of a is ${state} by now.\n`,
    });
    const { code, stdout, stderr } = await forgotten({ outcome, options: JSON_ONLY });
    expect([code, JSON.parse(stdout), stderr]).toEqual([
      8,
      { key: 'a', forgotten: false, now: outcome.now },
      '',
    ]);
  });

  it('says so where nothing is known, or not any more', async () => {
    for (const settings of [{ once: undefined }, { outcome: { status: 'nothing' } }]) {
      const text = await forgotten(settings);
      expect([text.code, text.stdout]).toEqual([1, 'Nothing is known of work under a.\n']);
      const { code, stdout, stderr } = await forgotten({ ...settings, options: JSON_ONLY });
      expect([code, JSON.parse(stdout), stderr]).toEqual([1, { key: 'a', forgotten: false }, '']);
    }
  });

  it('prints one document with --json', async () => {
    const outcome = { status: 'done', keys: ['a'], notRecorded: 'OOM' };
    const { code, stdout, stderr } = await forgotten({ outcome, options: JSON_ONLY });
    expect([code, JSON.parse(stdout)]).toEqual([
      7,
      { key: 'a', forgotten: true, notRecorded: 'OOM' },
    ]);
    expect(stderr).toBe('It was done, and the audit log could not be written: OOM\n');
    const done = await forgotten({ options: JSON_ONLY });
    expect([done.code, done.stdout, done.stderr]).toEqual([
      0,
      '{"key":"a","forgotten":true}\n',
      '',
    ]);
  });
});
