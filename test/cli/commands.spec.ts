import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { deferred, eventually } from '../support/eventually.js';
import { Locks } from '../support/locks.js';
import { RedisServer } from '../support/redis-server.js';
import type { LockModuleOptions } from '../../lib/options/lock-module-options.js';
import { LockEngine } from '../../lib/engine/lock-engine.js';
import { makerIn } from '../../lib/store/owner-token.js';
import { systemRuntime } from '../../lib/time/runtime.js';
import { COMMANDS } from '../../packages/cli/lib/commands.js';
import { FakeTerminal, run, runIn, wordsOf } from './program.js';

let server: RedisServer;
let opened: LockEngine[] = [];

beforeAll(async () => {
  server = await RedisServer.start();
});

afterEach(async () => {
  await Promise.all(opened.map((locks) => locks.shutdown(0)));
  opened = [];
  await server.command('FLUSHALL');
});

afterAll(async () => {
  await server.stop();
});

const MACHINE = { host: 'web-3', pid: 4711, application: 'orders', version: '1.4.2' };

/** A service that describes itself. */
async function service(
  machine = MACHINE,
  options: Partial<LockModuleOptions> = {},
): Promise<LockEngine> {
  const log = { warn: () => undefined, error: () => undefined };
  const locks = new LockEngine(
    { redis: server.url, ...options },
    { runtime: systemRuntime, log, machine },
  );
  opened.push(locks);
  await locks.open();
  await eventually(async () =>
    (await json('instances')).some((each: any) => each.host === machine.host && each.isListening),
  );
  return locks;
}

/** A service whose record is 20 s old, and which no message reaches. */
async function deadService(): Promise<{ locks: LockEngine; id: string }> {
  const log = { warn: () => undefined, error: () => undefined };
  const locks = new LockEngine({ redis: server.url }, { runtime: systemRuntime, log });
  opened.push(locks);
  await locks.open();
  const lock = await locks.acquire('any');
  const id = makerIn(String(await server.command('GET', 'lock:any'))) ?? '';
  await lock.release();
  const lifeMs = 3_600_000;
  const record = JSON.stringify({ id, ...MACHINE, startedAtMs: Date.now(), lifeMs });
  await server.command('SET', `lock:{instances}:${id}`, record, 'PX', lifeMs - 20_000);
  await server.command('ZADD', 'lock:{instances}', Date.now(), id);
  return { locks, id };
}

const on = (...args: readonly string[]): readonly string[] => [...args, '--redis', server.url];

async function json(...args: readonly string[]): Promise<any> {
  const { stdout } = await run(on(...args, '--json'));
  return JSON.parse(stdout);
}

describe('an example of a help', () => {
  const lines = COMMANDS.flatMap(({ works, examples }) =>
    works === 'with-redis' ? examples.map(([line]) => line) : [],
  ).filter((line) => !/--(redis|interval) /.test(line));

  it.each(lines)('is accepted, with its values: %s', async (line) => {
    expect((await run(on(...wordsOf(line)))).code).not.toBe(2);
  });
});

describe('list', () => {
  it('says who holds what and who waits, the longest lines first', async () => {
    const locks = await service();
    const other = await service({ ...MACHINE, host: 'web-4' });
    await locks.acquire('order:1');
    await locks.acquire('order:2', { mode: 'shared' });
    const waiting = other.acquire('order:2', { wait: '20s' });
    waiting.catch(() => undefined);
    await eventually(
      async () =>
        (await json('list'))[0]?.waiting !== undefined &&
        (await json('list')).some(({ waiting: n }: any) => n === 1),
    );
    const { code, stdout, stderr } = await run(on('list'));
    expect(code).toBe(0);
    expect(stderr).toBe(`Redis at 127.0.0.1:${server.port}, prefix lock:\n`);
    expect(stdout).toMatch(
      /^STATE +KEY +HELD FOR +LINE +HOLDER +WHERE +ENDS IN +MODE\nheld +order:2 .* 1 +orders 1\.4\.2 +web-3, pid 4711 .* shared\nheld +order:1 .* orders 1\.4\.2 +web-3, pid 4711 .* exclusive\n$/,
    );
    expect((await run(on('list', 'order:1'))).stdout).not.toContain('order:2');
    expect((await run(on('list', '--limit', '1'))).stderr).toContain('1 of 2 keys');
    expect(await json('list', '--limit', '1')).toHaveLength(1);
  });

  it('names the mode of a key that several hold together', async () => {
    const locks = await service();
    await locks.acquire('order:1', { mode: 'shared' });
    await locks.acquire('order:1', { mode: 'shared' });
    expect(await json('list')).toMatchObject([{ key: 'order:1', mode: 'shared', holders: 2 }]);
    expect((await run(on('list'))).stdout).toMatch(/\nheld +order:1 .* shared\n/);
    expect((await run(on('show', 'order:1'))).stdout).toContain('held, shared');
  });

  it('names a lock that was detached', async () => {
    const locks = await service();
    await (await locks.acquire('order:2')).detach({ ttl: '20s' });
    expect((await run(on('list', 'order:2'))).stdout).toMatch(/\ndetached +order:2 /);
    expect((await run(on('show', 'order:2'))).stdout).toMatch(
      /it was detached, and waits to be attached[^]* unless it is attached\n/,
    );
  });

  it('fits the window, and shows what it cannot print', async () => {
    await server.command('SET', `lock:${'a'.repeat(100)}\x1b[2J`, 'theirs');
    const { stdout } = await run(on('list'), {
      isTty: true,
      env: { NO_COLOR: '1' },
      window: { columns: 60, rows: 20 },
    });
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(60);
    expect(stdout).toContain('a…');
    expect((await run(on('list'))).stdout).toContain('\\u{1b}[2J');
  });

  it('says of which holders and instances nothing was heard for 15 s', async () => {
    const frozen = await service();
    const other = await service({ ...MACHINE, host: 'web-4' });
    await frozen.acquire('order:1');
    await other.acquire('order:2');
    expect(await run(on('list', '--unresponsive'))).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('None of 2 keys is unresponsive.'),
    });
    expect((await run(on('instances', '--unresponsive'))).stderr).toContain(
      'None of 2 services is unresponsive.',
    );
    const [{ id }] = (await json('instances')).filter(({ host }: any) => host === 'web-3');
    // As that of a process that no message reaches. It reports every 5 s, so it may do so in between.
    const silenced = async (...args: readonly string[]) => {
      const name = `lock:{instances}:${id}`;
      const { address: _, ...record } = JSON.parse(String(await server.command('GET', name)));
      await server.command('SET', name, JSON.stringify(record), 'PX', record.lifeMs - 20_000);
      return run(on(...args));
    };
    await eventually(async () => {
      const { stdout } = await silenced('list', '--unresponsive');
      return /^STATE .*\nunresponsive +order:1 .*\n$/.test(stdout);
    });
    await eventually(async () => {
      const { stdout } = await silenced('list', '--unresponsive', '--json');
      return (
        JSON.parse(stdout)
          .map(({ key }: any) => key)
          .join() === 'order:1'
      );
    });
    await eventually(async () => {
      const { stdout } = await silenced('watch', '--unresponsive');
      return / 1 key, .*\nSTATE .*\nunresponsive +order:1 .*\n$/.test(stdout);
    });
    await eventually(async () => {
      const { stdout } = await silenced('instances', '--unresponsive');
      return /^STATE .*\nunresponsive +\S+ +orders +web-3 .*\n$/.test(stdout);
    });
  });

  it('prints only what is detached, or has failed', async () => {
    const locks = await service();
    await locks.acquire('held');
    expect((await run(on('list', '--detached', '--failed'))).stderr).toContain(
      'None of 1 key is detached or failed.',
    );
    await (await locks.acquire('left')).detach({ ttl: '20s' });
    const work = async (key: string, attempts: number) =>
      locks
        .runOnce(key, { keepDone: '1h', attempts }, () => {
          throw new Error('mail server');
        })
        .catch(() => undefined);
    await work('failed', 3);
    await work('exhausted', 1);
    await locks.runOnce('done', { keepDone: '1h' }, () => 1);
    const keys = async (...options: readonly string[]) =>
      (await json('list', '--sort', 'key', ...options)).map(({ key }: any) => key);
    expect(await keys('--detached')).toEqual(['left']);
    expect(await keys('--failed')).toEqual(['exhausted', 'failed']);
    expect(await keys('--failed', '--detached')).toEqual(['exhausted', 'failed', 'left']);
    expect((await run(on('watch', '--failed'))).stdout).toMatch(/ 2 keys, /);
  });

  it('sorts as it is asked to, in a table and in JSON', async () => {
    const locks = await service();
    for (const [key, ttl] of [
      ['b', '60s'],
      ['c', '20s'],
      ['a', '40s'],
    ] as const) {
      await locks.acquire(key, { ttl });
      const acquiredMs = Date.now();
      await eventually(async () => Date.now() > acquiredMs);
    }
    const keysBy = async (order: string) => {
      const rows = await json('list', '--sort', order);
      const { stdout } = await run(on('list', '--sort', order));
      const printed = [...stdout.matchAll(/^held +(\w)/gm)].map(([, key]) => key);
      expect(rows.map(({ key }: any) => key)).toEqual(printed);
      return printed.join('');
    };
    expect(await keysBy('held')).toBe('bca');
    expect(await keysBy('waiting')).toBe('bca');
    expect(await keysBy('expires')).toBe('cab');
    expect(await keysBy('key')).toBe('abc');
    expect(await run(on('list', '--sort', 'expires', '--limit', '1'))).toMatchObject({
      stdout: expect.stringMatching(/^STATE .*\nheld +c .*\n$/),
      stderr: expect.stringContaining('1 of 3 keys, those that end first.'),
    });
    expect(await json('list', '--sort', 'key', '--limit', '2')).toHaveLength(2);
  });

  it('of nothing says so', async () => {
    await service();
    expect(await run(on('list'))).toMatchObject({ code: 0, stdout: '' });
    expect((await run(on('list', '--json'))).stdout).toBe('[]\n');
  });
});

describe('show', () => {
  it('ends with 1 where nothing is known of the key', async () => {
    expect(await run(on('show', 'free'))).toMatchObject({ code: 1, stdout: 'free  free\n' });
  });

  it('names the place of a call by hand, and other software', async () => {
    const locks = await service();
    await locks.acquire('order:1');
    await server.command('SET', 'lock:order:2', 'theirs');
    expect((await run(on('show', 'order:1'))).stdout).toMatch(/ {4}in .*commands\.spec\.ts:\d+/);
    const { code, stdout } = await run(on('show', 'order:2'));
    expect(code).toBe(0);
    expect(stdout).toContain('  other software, which Holdfast knows nothing of\n');
    expect(stdout).toContain('\n    the lock never ends by itself\n');
    expect((await json('show', 'order:2')).holders[0].remainingMs).toBeNull();
  });

  it('says why a caller of several keys waits', async () => {
    const locks = await service();
    const other = await service({ ...MACHINE, host: 'web-4' });
    await locks.acquire('a');
    other.acquire(['a', 'b'], { wait: '20s' }).catch(() => undefined);
    await eventually(async () => (await run(on('show', 'a'))).stdout.includes('for all of a, b'));
  });
});

/** As `show` prints it. */
async function holderOf(key: string): Promise<string> {
  const { stdout } = await run(on('show', key));
  return / {4}holder (\S+)\n/.exec(stdout)?.[1] ?? '';
}

describe('release', () => {
  const because = ['--reason', 'stuck'];

  it('asks on a terminal, and does what the answer is', async () => {
    const locks = await service();
    const lock = await locks.acquire('order:1');
    const no = await run(on('release', 'order:1', ...because), { canAsk: true, answers: ['n'] });
    expect(no).toMatchObject({ code: 5, stdout: '' });
    expect(no.terminal.questions).toEqual([
      'orders 1.4.2 on web-3, pid 4711 replies, so its work may be running: the work has to stop at its signal.\nRelease order:1? [y/N] ',
    ]);
    expect(lock.isHeld).toBe(true);

    const aborted = deferred<unknown>();
    lock.signal.addEventListener('abort', () => aborted.resolve(lock.signal.reason));
    const yes = await run(on('release', 'order:1', ...because, '--by', 'ada'), {
      canAsk: true,
      answers: ['yes'],
    });
    expect(yes).toMatchObject({ code: 0, stdout: 'Released order:1. No caller waits for it.\n' });
    expect(await aborted.promise).toMatchObject({
      reason: 'force-released',
      detail: expect.stringContaining('ada'),
    });
    const gone = ['--yes', '--if-holder', '3f2a9c1d0e4b'];
    expect(await run(on('release', 'order:1', ...because, ...gone))).toMatchObject({
      code: 1,
      stdout: 'order:1 is free: it has no holder.\n',
    });
    expect((await run(on('show', 'order:1'))).stdout).toMatch(
      /What operators did\n {2}\S+ \S+ UTC {2}release by ada: stuck\n/,
    );
  });

  it('changes nothing without a terminal, unless --yes is given', async () => {
    const locks = await service();
    const lock = await locks.acquire('order:1');
    const { code, stderr } = await run(on('release', 'order:1', ...because));
    expect(code).toBe(5);
    expect(stderr).toContain('Give --yes to act without a question');
    expect(await run(on('release', 'order:1', ...because, '-y'))).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('"release" with --yes needs --if-holder'),
    });
    expect(lock.isHeld).toBe(true);
    const named = ['-y', '--if-holder', await holderOf('order:1')];
    expect(await run(on('release', 'order:1', ...because, ...named, '--json'))).toMatchObject({
      code: 0,
      stderr: '',
    });
    expect(await json('release', 'order:1', ...because, ...named)).toEqual({
      key: 'order:1',
      released: false,
    });
  });

  it('leaves the key to a later holder than the one that it showed, or that was named', async () => {
    const locks = await service();
    const lock = await locks.acquire('order:1');
    const named = ['--yes', '--if-holder', await holderOf('order:1')];
    let next = lock;
    const terminal = Object.assign(new FakeTerminal(), {
      canAsk: true,
      // A colleague is faster.
      ask: async () => {
        await lock.release();
        next = await locks.acquire('order:1');
        return 'y';
      },
    });
    expect(await runIn(terminal, ...on('release', 'order:1', ...because))).toBe(8);
    expect(terminal.stderr).toContain('Nothing was changed: another holder has order:1 now.');
    expect(terminal.stderr).toContain(`    holder ${await holderOf('order:1')}\n`);
    expect(await run(on('release', 'order:1', ...because, ...named))).toMatchObject({ code: 8 });
    await next.extend();
    expect(await json('audit')).toEqual([]);
  });

  it('says that it was done and not recorded, where the memory of Redis is full', async () => {
    const locks = await service();
    const full = () => server.command('CONFIG', 'SET', 'maxmemory', '1');
    const answered = () => ({ canAsk: true, answers: ['y'] });
    try {
      const lock = await locks.acquire(['order:1', 'order:2']);
      await full();
      const released = await run(on('release', 'order:1', ...because), answered());
      expect(lock.signal.reason).toMatchObject({ reason: 'force-released' });
      expect(released).toMatchObject({
        code: 7,
        stdout: 'Released order:1. No caller waits for it.\n',
        stderr: expect.stringMatching(
          /It was done, and the audit log could not be written: .*OOM command not allowed/,
        ),
      });
      await server.command('CONFIG', 'SET', 'maxmemory', '0');
      await locks.runOnce('report', { keepDone: '1h' }, () => 1);
      const { locks: dead, id } = await deadService();
      await dead.acquire('order:3');
      await full();
      const all = on('release-instance', id, ...because, '--yes');
      expect(await run([...all, '--json'])).toMatchObject({
        code: 7,
        stdout: expect.stringMatching(/"released":\["order:3"\],"notRecorded":".*OOM/),
      });
      expect(await run(on('forget', 'report', ...because), answered())).toMatchObject({
        code: 7,
      });
    } finally {
      await server.command('CONFIG', 'SET', 'maxmemory', '0');
    }
    expect(await json('list')).toEqual([]);
    expect(await json('audit')).toEqual([]);
  });

  it('frees everything of one instance that is dead', async () => {
    const { locks, id } = await deadService();
    const other = await service({ ...MACHINE, host: 'web-4' });
    await locks.acquire(['a', 'b']);
    await other.acquire('c');
    const asked = await run(on('release-instance', id, ...because), {
      canAsk: true,
      answers: [''],
    });
    expect(asked.code).toBe(5);
    expect(asked.terminal.questions[0]).toMatch(
      /^orders 1\.4\.2 on web-3, pid 4711 is unresponsive\. It was last seen 2\d s ago\.\n/,
    );
    expect(await run(on('release-instance', id, ...because, '--yes'))).toMatchObject({
      code: 0,
      stdout: 'Released 2 keys:\n  a\n  b\n',
    });
    expect(await run(on('release-instance', id, ...because, '--yes'))).toMatchObject({ code: 1 });
    expect(
      (await run(on('release-instance', 'nobody', ...because), { canAsk: true, answers: ['y'] }))
        .terminal.questions[0],
    ).toContain('No instance nobody has a record here');
    expect(await json('list')).toHaveLength(1);
  });

  it('releases nothing of an instance that replies', async () => {
    const locks = await service();
    const lock = await locks.acquire('a');
    const [{ id }] = await json('instances');
    for (const options of [[...because, '--yes'], ['-n']])
      expect(await run(on('release-instance', id, ...options))).toMatchObject({
        code: 8,
        stdout: '',
        stderr: expect.stringContaining(
          'orders 1.4.2 on web-3, pid 4711 replies, so its work runs.',
        ),
      });
    await lock.extend();
    expect(await json('audit')).toEqual([]);
  });
});

describe('a dry run', () => {
  const DRY = 'Dry run: nothing was changed.\n';
  const unchanged = async (): Promise<void> => expect(await json('audit')).toEqual([]);

  it('of release prints the question, and who would lose the key', async () => {
    const locks = await service();
    const lock = await locks.acquire('order:1');
    const holder = await holderOf('order:1');
    const asked = await run(on('release', 'order:1', '--reason', 'stuck'), { canAsk: true });
    const [question = ''] = asked.terminal.questions;
    const plan = `${question.replace(' [y/N] ', '')}\n  holder ${holder}: orders 1.4.2 on web-3, pid 4711\n`;
    for (const options of [
      ['-n'],
      ['-n', '--if-holder', holder],
      ['--dry-run', '--yes', '--if-holder', holder],
    ])
      expect(await run(on('release', 'order:1', ...options))).toMatchObject({
        code: 0,
        stdout: plan,
        stderr: expect.stringMatching(/Held by[^]*Dry run: nothing was changed\.\n$/),
      });
    expect(await json('release', 'order:1', '-n')).toMatchObject({
      ...{ key: 'order:1', released: false, dryRun: true },
      holders: [{ instance: { host: 'web-3' } }],
    });
    await lock.extend();
    await unchanged();
  });

  it('of release ends as the release would where there is nothing to release', async () => {
    const locks = await service();
    expect(await run(on('release', 'order:1', '-n'))).toMatchObject({
      code: 1,
      stdout: 'order:1 is free: it has no holder.\n',
    });
    await locks.acquire('order:1');
    const other = ['--if-holder', 'ffffffffffff'];
    const tried = await run(on('release', 'order:1', '-n', ...other));
    expect(tried).toMatchObject({ code: 8, stdout: '' });
    const done = await run(on('release', 'order:1', '-y', '--reason', 'stuck', ...other));
    expect(done.code).toBe(8);
    await unchanged();
  });

  it('of release-instance prints the keys that it then releases', async () => {
    const { locks, id } = await deadService();
    const other = await service({ ...MACHINE, host: 'web-4' });
    await other.acquire('c', { mode: 'shared' });
    await locks.acquire('c', { mode: 'shared' });
    await locks.acquire('a');
    await (await locks.acquire('b')).detach({ ttl: '20s' });
    await other.acquire('d');
    const tried = await run(on('release-instance', id, '-n'));
    expect(tried).toMatchObject({ code: 0, stderr: expect.stringContaining(DRY) });
    expect(tried.stdout).toMatch(
      /^orders 1\.4\.2 on web-3, pid 4711 is unresponsive\. .*\nRelease everything that it holds\?\n/,
    );
    await unchanged();
    const { keys } = await json('release-instance', id, '-n');
    const released = await json('release-instance', id, '-y', '--reason', 'stuck');
    expect(keys).toEqual(released.released);
    expect(tried.stdout.split('\n').slice(2, -1)).toEqual(keys.map((key: string) => `  ${key}`));
    expect(await run(on('release-instance', id, '-n'))).toMatchObject({
      code: 1,
      stdout: `${id} holds nothing.\n`,
    });
    expect(await run(on('release-instance', 'nobody', '-n'))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('No instance nobody has a record here'),
    });
  });

  it('of forget prints the question', async () => {
    const locks = await service();
    await locks.runOnce('report', { keepDone: '1h' }, () => 1);
    expect(await run(on('forget', 'report', '-n'))).toMatchObject({
      code: 0,
      stdout:
        'The work of report is done after 1 attempt. Forget that, so that it is done again?\n',
      stderr: expect.stringContaining(DRY),
    });
    expect(await json('forget', 'report', '-n')).toMatchObject({
      ...{ forgotten: false, dryRun: true, once: { state: 'done' } },
    });
    expect((await run(on('forget', 'other', '-n'))).code).toBe(1);
    await unchanged();
  });
});

describe('forget', () => {
  it('has work done again that was done once', async () => {
    const locks = await service();
    const work = (): Promise<{ outcome: string }> =>
      locks.runOnce('report', { keepDone: '1h' }, () => 1);
    expect(await work()).toMatchObject({ outcome: 'completed' });
    expect(await work()).toMatchObject({ outcome: 'done-elsewhere' });
    expect((await run(on('list'))).stdout).toMatch(/\nonce done +report\n/);
    const shown = await run(on('show', 'report'));
    expect(shown).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /Work that is to be done once\n {2}done, 1 attempt\n {2}remembered for another (1 h|59 min)/,
      ),
    });
    const asked = await run(on('forget', 'report', '--reason', 'wrong day'), {
      canAsk: true,
      answers: ['y'],
    });
    expect(asked).toMatchObject({
      code: 0,
      stdout: 'Forgotten report. The next caller does the work.\n',
    });
    expect(asked.terminal.questions[0]).toContain('is done after 1 attempt');
    expect(await work()).toMatchObject({ outcome: 'completed' });
    expect(await run(on('forget', 'other', '--reason', 'x', '--yes'))).toMatchObject({ code: 1 });
  });
});

describe('instances and top', () => {
  it('tell who is there, and what is waited for', async () => {
    const locks = await service();
    const other = await service({ ...MACHINE, host: 'web-4', pid: 12 });
    expect((await run(on('instances'))).stdout).toMatch(
      /^STATE +ID +APPLICATION +HOST +PID +SEEN +VERSION +STARTED\nreports +\S+ +orders +web-4 +12 .* 1\.4\.2 .* UTC\nreports +\S+ +orders +web-3 +4711 .* 1\.4\.2 .* UTC\n$/,
    );
    const lock = await locks.acquire('order:1');
    const waited = other.acquire('order:1', { wait: '20s' });
    await eventually(async () => (await json('list'))[0].waiting === 1);
    expect((await run(on('top'))).stdout).toMatch(
      /^KEY +WAITING +OLDEST +WAITED +WAITS +EACH\norder:1 +1 +\d+ m?s +\d+ m?s +0 +\d+ m?s\n$/,
    );
    await lock.release();
    await (await waited).release();
    expect(await run(on('top'))).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^KEY +WAITED +WAITS +EACH\norder:1 +\d+ m?s +1 +\d+ m?s\n$/),
    });
    expect((await json('top')).keys).toMatchObject([{ key: 'order:1', waits: 1 }]);
    expect(await run(on('audit'))).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('No operator has done anything here.'),
    });
  });
});

describe('watch', () => {
  it('draws over its last picture in the alternate screen, and restores the screen', async () => {
    const locks = await service();
    await locks.acquire('order:1');
    const terminal = new FakeTerminal();
    Object.assign(terminal, {
      isTty: true,
      window: { columns: 50, rows: 6 },
      env: { NO_COLOR: '1' },
    });
    const seen = (text: string): Promise<void> =>
      new Promise((resolve) => {
        terminal.onWrite = (all) => {
          if (all.slice(all.lastIndexOf('\x1b[H')).includes(text)) resolve();
        };
      });
    const first = seen('order:1');
    const ended = runIn(terminal, ...on('watch', '--interval', '100ms'));
    await first;
    await locks.acquire('order:2');
    await seen('order:2');
    const narrow = seen('…');
    terminal.resize({ columns: 20, rows: 6 });
    await narrow;
    const frame = terminal.stdout.slice(terminal.stdout.lastIndexOf('\x1b[H') + 3);
    const lines = frame.replaceAll('\x1b[K', '').replaceAll('\x1b[J', '').split('\r\n');
    expect(lines.length).toBeLessThanOrEqual(6);
    for (const line of lines.filter((each) => !each.includes('keys,')))
      expect(line.length).toBeLessThanOrEqual(20);
    terminal.press('x');
    terminal.press('q');
    expect(await ended).toBe(0);
    expect(terminal.stdout.startsWith('\x1b[?1049h\x1b[?25l')).toBe(true);
    expect(terminal.stdout.endsWith('\x1b[?25h\x1b[?1049l')).toBe(true);
    expect(terminal.listeners).toBe(0);
  });

  it('shows an outage and goes on', async () => {
    const own = await RedisServer.start();
    const terminal = Object.assign(new FakeTerminal(), {
      isTty: true,
      window: { columns: 200, rows: 6 },
    });
    const seen = (text: string): Promise<void> =>
      new Promise((resolve) => {
        terminal.onWrite = (all) => {
          if (all.slice(all.lastIndexOf('\x1b[H')).includes(text)) resolve();
        };
      });
    try {
      const there = seen('0 keys');
      const ended = runIn(terminal, 'top', '--redis', own.url, '--interval', '100ms');
      await Promise.race([seen('No caller waits'), there]);
      const away = seen('not available');
      await own.kill();
      await away;
      const back = seen('No caller waits');
      await own.restart();
      await back;
      terminal.stop();
      expect(await ended).toBe(0);
    } finally {
      await own.stop();
    }
  });

  it('prints one look where there is no terminal, and one after the other with --interval', async () => {
    const locks = new Locks({ redis: server.url });
    opened.push(locks);
    await locks.acquire('order:1');
    expect(await run(on('watch'))).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('order:1'),
    });
    const terminal = new FakeTerminal();
    const twice = new Promise<void>((resolve) => {
      terminal.onWrite = (all) => {
        if (all.split('\n').length > 2) resolve();
      };
    });
    const ended = runIn(terminal, ...on('watch', '--json', '--interval', '100ms'));
    await twice;
    terminal.stop();
    expect(await ended).toBe(0);
    for (const line of terminal.stdout.trim().split('\n'))
      expect(JSON.parse(line)).toMatchObject({ found: 1 });
  });
});
