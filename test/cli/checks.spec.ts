import { describe, expect, it } from '@jest/globals';
import { keys } from '../../packages/cli/lib/doctor/checks/keys.js';
import { persistence } from '../../packages/cli/lib/doctor/checks/persistence.js';
import type { Answer, Server } from '../../packages/cli/lib/doctor/server.js';
import type { Subject } from '../../packages/cli/lib/doctor/subject.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

const NOBODY = {} as Subject;

const answered = (value: unknown): Answer => ({ status: 'answered', value });
const FAILED: Answer = { status: 'failed', kind: 'error', message: 'NOPERM' };

describe('persistence', () => {
  interface Settings {
    readonly info?: readonly string[];
    readonly appendfsync?: string;
    readonly save?: string;
    readonly epoch?: Answer;
  }
  const found = async ({ info = [], appendfsync, save, epoch = answered(null) }: Settings) => {
    const setting = (name: string, value: string | undefined): Answer =>
      value === undefined ? FAILED : answered([name, value]);
    const server = {
      info: async () => answered(['# Persistence', 'loading:0', ...info].join('\r\n')),
      epoch: async () => epoch,
      ask: async (...[command, verb, name]: readonly string[]) => {
        expect([command, verb]).toEqual(['config', 'get']);
        return name === 'save' ? setting('save', save) : setting('appendfsync', appendfsync);
      },
    } as unknown as Server;
    return persistence.examine(server, NOBODY);
  };
  const AOF = ['aof_enabled:1'];
  const guarded = answered('run 7');
  const GUARDED = ' The restart guard keeps the server from granting locks until then.';
  const WEAK =
    'Writes are appended to a file, and the system decides when they are on disk (appendfsync no).';
  const NOTHING = 'Nothing is written to disk: a restart forgets all locks that are held.';
  const lastSecond = (how: string): string =>
    `Writes are appended to a file (${how}): a crash of the machine can forget the last second.`;
  const snapshots = (points: string): string =>
    `Only snapshots are written to disk${points}: a crash forgets the locks since the last one.`;

  it.each<[string, Settings, string]>([
    [
      'ok',
      { info: AOF, appendfsync: 'always' },
      'Every write is on disk before it is answered (appendfsync always).',
    ],
    ['ok', { info: AOF, appendfsync: 'everysec' }, lastSecond('appendfsync everysec')],
    ['ok', { info: AOF }, lastSecond('how often it is synced is not known')],
    [
      'ok',
      { info: AOF, appendfsync: 'everysec', epoch: guarded },
      lastSecond('appendfsync everysec') + GUARDED,
    ],
    ['warning', { info: AOF, appendfsync: 'no' }, WEAK],
    ['warning', { info: AOF, appendfsync: 'no', epoch: FAILED }, WEAK],
    ['ok', { info: AOF, appendfsync: 'no', epoch: guarded }, WEAK + GUARDED],
    ['warning', { save: '' }, NOTHING],
    ['ok', { save: '', epoch: guarded }, NOTHING + GUARDED],
    ['warning', { save: '3600 1' }, snapshots(' (save 3600 1)')],
    ['warning', {}, snapshots('')],
  ])('is %s with %j', async (level, settings, text) => {
    const findings = await found(settings);
    expect(findings).toMatchObject([{ level, text }]);
    if (level === 'warning') expect(findings[0]?.remedy).toMatch(/^Set appendonly yes/);
  });

  it('reports what goes wrong', async () => {
    const info = ['rdb_last_bgsave_status:err', 'aof_last_write_status:err'];
    const [, ...failures] = await found({ save: '', info });
    expect(failures).toMatchObject([
      {
        level: 'error',
        text: 'The last snapshot failed: Redis may refuse all writes, and so all locks (MISCONF).',
        remedy:
          'Look into the log of the server: the disk may be full, or the folder not writable.',
      },
      {
        level: 'error',
        text: 'The last write to the append-only file failed: Redis refuses all writes (MISCONF).',
        remedy: 'Look into the log of the server: the disk may be full.',
      },
    ]);
    const [, loading] = await found({ save: '', info: ['loading:1'].concat(info.slice(2)) });
    expect(loading).toBeUndefined();
    const well = ['rdb_last_bgsave_status:ok', 'aof_last_write_status:ok'];
    expect(await found({ save: '', info: well })).toHaveLength(1);
  });
});

describe('keys', () => {
  interface Kept {
    readonly type: string;
    readonly value?: string;
    readonly leftMs?: number;
  }
  const OURS = { type: 'string', value: 'holdfast:token', leftMs: 1_000 };
  const THEIRS = { type: 'string', value: 'theirs', leftMs: -1 };

  function serverWith(kept: Readonly<Record<string, Kept>>, prefix = 'lock:') {
    const names = Object.keys(kept);
    const patterns = new Set<string>();
    const ask = async (command: string, ...args: readonly string[]): Promise<Answer> => {
      if (command === 'scan') {
        patterns.add(args[2] ?? '');
        // Two pages, and one name on both.
        return args[0] === '0'
          ? answered(['7', names.slice(0, 2)])
          : answered(['0', names.slice(1)]);
      }
      const found = kept[args[0] ?? ''];
      if (found === undefined) return FAILED;
      if (command === 'type') return found.type === '' ? FAILED : answered(found.type);
      return answered(command === 'get' ? (found.value ?? null) : (found.leftMs ?? -2));
    };
    const server = { prefix, runtime: new VirtualRuntime(), ask } as unknown as Server;
    return { server, patterns };
  }
  const found = (kept: Readonly<Record<string, Kept>>, prefix?: string) =>
    keys.examine(serverWith(kept, prefix).server, NOBODY);

  const NONE = '0 keys held, 0 keys waited for under this prefix.';

  it('are counted where they are ours', async () => {
    expect(
      await found({
        'lock:a': OURS,
        'lock:b': OURS,
        '{lock:a}:queue': { type: 'zset' },
        '{lock:a}:queue:waits': { type: 'string' },
        '{lock:a}:fence': { type: 'string' },
        '{lock:a}:holders': { type: 'zset' },
        '{lock:a}:once': { type: 'hash' },
        'lock:{epoch}': { type: 'string' },
        'lock:{instances}': { type: 'zset' },
        'lock:{instances}:one': { type: 'string' },
        'lock:{audit}': { type: 'stream' },
      }),
    ).toMatchObject([{ level: 'ok', text: '2 keys held, 1 key waited for under this prefix.' }]);
  });

  it('of others are left out, whatever they are', async () => {
    const list = { type: 'list' };
    expect(
      await found({
        'other:a': list,
        '{other:a}:queue': list,
        '{lock:a}:others': list,
        'lock:{a}': list,
        'lock:<trial:1>': list,
        'at:lock:a': list,
      }),
    ).toMatchObject([{ level: 'ok', text: NONE }]);
  });

  it('may be in one slot, because of their prefix', async () => {
    const kept = {
      '{app}:lock:a': OURS,
      '{app}:lock:a:{queue}': { type: 'zset' },
      '{app}:lock:a:{once}': { type: 'hash' },
      '{{app}:lock:a}:queue': { type: 'list' },
    };
    expect(await found(kept, '{app}:lock:')).toMatchObject([
      { text: '1 key held, 1 key waited for under this prefix.' },
    ]);
  });

  it('with another type are an error, of which five are named', async () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => `lock:${name}`);
    const kept = Object.fromEntries(names.map((name) => [name, { type: 'list' }]));
    const gone = { 'lock:gone': { type: 'none' }, 'lock:hidden': { type: '' } };
    const named = names.slice(0, 5).map((name) => `"${name}" is a list`);
    expect(await found({ ...kept, ...gone })).toMatchObject([
      { level: 'ok', text: NONE },
      {
        level: 'error',
        text: `Other software uses the prefix lock:: ${named.join(', ')} and 2 more. Locks of such keys fail (503).`,
        remedy: 'Choose another "keyPrefix", or delete these keys.',
      },
    ]);
    const queue = await found({ '{lock:a}:queue:x': { type: 'zset' } });
    expect(queue[1]?.text).toContain('"{lock:a}:queue:x" is a zset. Locks');
  });

  it('that never end and are not ours are a warning, of which five are named', async () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => `lock:${name}`);
    const kept = Object.fromEntries(names.map((name) => [name, THEIRS]));
    const fine = { 'lock:ours': { ...OURS, leftMs: -1 }, 'lock:ends': { ...THEIRS, leftMs: 5 } };
    const [, all] = await found({ ...fine, ...kept });
    const named = names.slice(0, 5).map((name) => `"${name}"`);
    expect(all).toMatchObject({
      level: 'warning',
      text: `What Holdfast did not write, and what never ends, is at ${named.join(', ')} and 1 more: locks of these keys are never granted.`,
    });
    const [, one] = await found({ 'lock:a': THEIRS });
    expect(one?.text).toContain('is at "lock:a": locks of this key are never granted.');
  });

  it('are searched under the prefix as it is written', async () => {
    const { server, patterns } = serverWith({}, 'a*[b]:');
    await keys.examine(server, NOBODY);
    expect([...patterns]).toEqual(['*a\\*\\[b\\]:*']);
  });

  it('are not all looked at where there are too many', async () => {
    const many = Array.from({ length: 10_000 }, (_, index) => `other:${String(index)}`);
    const ask = async (): Promise<Answer> => answered(['7', many]);
    const server = { prefix: 'lock:', runtime: new VirtualRuntime(), ask } as unknown as Server;
    expect(await keys.examine(server, NOBODY)).toMatchObject([
      { text: `${NONE} Not all keys were looked at: there are too many.` },
    ]);
  });

  it('are not known where the server refuses to list them', async () => {
    const server = {
      prefix: 'lock:',
      runtime: new VirtualRuntime(),
      ask: async () => FAILED,
    } as unknown as Server;
    expect(await keys.examine(server, NOBODY)).toMatchObject([{ level: 'unknown' }]);
  });
});
