import { describe, expect, it } from '@jest/globals';
import { database } from '../../packages/cli/lib/doctor/checks/database.js';
import { eviction } from '../../packages/cli/lib/doctor/checks/eviction.js';
import { keys } from '../../packages/cli/lib/doctor/checks/keys.js';
import { persistence } from '../../packages/cli/lib/doctor/checks/persistence.js';
import { pubSub } from '../../packages/cli/lib/doctor/checks/pub-sub.js';
import { restartGuard } from '../../packages/cli/lib/doctor/checks/restart-guard.js';
import { rights } from '../../packages/cli/lib/doctor/checks/rights.js';
import { role } from '../../packages/cli/lib/doctor/checks/role.js';
import { roundTrip } from '../../packages/cli/lib/doctor/checks/round-trip.js';
import { version } from '../../packages/cli/lib/doctor/checks/version.js';
import type { Found } from '../../packages/cli/lib/doctor/finding.js';
import { keyPatterns } from '../../packages/cli/lib/doctor/names.js';
import { settingIn, type Answer, type Server } from '../../packages/cli/lib/doctor/server.js';
import type { ServerCheck, Subject } from '../../packages/cli/lib/doctor/subject.js';
import { masterIn } from '../../packages/cli/lib/servers.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

const answered = (value: unknown): Answer => ({ status: 'answered', value });
const failed = (message: string): Answer => ({ status: 'failed', kind: 'error', message });
const REFUSED = failed('NOPERM User a.b may not.');

type Kind = Subject['kind'];

/** What a check finds at such a server. */
const found = async (
  check: ServerCheck,
  server: object,
  kind: Kind = 'one Redis',
): Promise<readonly Found[]> =>
  check.examine(
    { runtime: new VirtualRuntime(), prefix: 'lock:', database: 0, ...server } as unknown as Server,
    { kind } as Subject,
  );

/** A server that answers with these lines to any section of INFO. */
const withInfo = (...lines: readonly string[]): object => ({
  info: async () => answered(['# Section', ...lines].join('\r\n')),
});
const withoutInfo = { info: async () => REFUSED };

const CONSOLE = 'Look into the console or the configuration of the server.';
const notKnown = (what: string, why = 'NOPERM User a.b may not'): Found => ({
  level: 'unknown',
  text: `${what} is not known, because the server refuses to say (${why}).`,
  remedy: CONSOLE,
});

describe('the version', () => {
  const REMEDY = 'Use Redis 6.2 or later, or Valkey.';
  const OLD = 'has everything that locks need, and is older than any that is tested.';

  it.each<[string, readonly string[], Found]>([
    ['7.4.1', ['redis_version:7.4.1'], { level: 'ok', text: 'Redis 7.4.1' }],
    ['7.0', ['redis_version:7.0.0'], { level: 'ok', text: 'Redis 7.0.0' }],
    ['6.2', ['redis_version:6.2.0'], { level: 'ok', text: 'Redis 6.2.0' }],
    [
      'older than 6.2',
      ['redis_version:6.0.16'],
      { level: 'warning', text: `Redis 6.0.16 ${OLD}`, remedy: REMEDY },
    ],
    [
      'older than 6',
      ['redis_version:5.0.7'],
      { level: 'error', text: 'Redis 5.0.7 is too old: no lock is granted.', remedy: REMEDY },
    ],
    [
      'of Valkey',
      ['redis_version:7.2.4', 'valkey_version:8.1.0'],
      { level: 'ok', text: 'Valkey 8.1.0' },
    ],
    ['not named', [], notKnown('The version', 'INFO does not name it')],
  ])('that is %s is judged', async (_, info, finding) => {
    expect(await found(version, withInfo(...info))).toEqual([finding]);
  });
});

describe('the role', () => {
  const HOW = 'Whether it is a master';
  const failOver = (replicas: string): string =>
    `It is a master with ${replicas}. A fail-over can forget the newest locks, unless the option "replicas" waits for them.`;
  const quorum = {
    level: 'warning',
    text: 'It is a master with 1 replica. In a quorum a replica that takes over may have forgotten leases.',
    remedy: 'Leave fail-over off for masters of a quorum, or use the option "restartGuard".',
  } as const;

  it.each<[string, Kind, Found]>([
    ['no replicas', 'several masters', { level: 'ok', text: 'It is a master without replicas.' }],
    ['1 replica', 'one Redis', { level: 'ok', text: failOver('1 replica') }],
    ['2 replicas', 'a Cluster', { level: 'ok', text: failOver('2 replicas') }],
    ['1 replica', 'several masters', quorum],
  ])('of a master with %s of %s is judged', async (replicas, kind, finding) => {
    const info = withInfo(
      'role:master',
      `connected_slaves:${String(Number.parseInt(replicas) || 0)}`,
    );
    expect(await found(role, info, kind)).toEqual([finding]);
  });

  it('is not known where INFO does not name it, or is refused', async () => {
    expect(await found(role, withInfo())).toEqual([notKnown(HOW, 'INFO does not name a role')]);
    expect(await found(role, withoutInfo)).toEqual([notKnown(HOW)]);
  });

  it('of a replica names its master, as a URL has it', () => {
    const named = (host: string) =>
      masterIn(answered(`role:slave\r\nmaster_host:${host}\r\nmaster_port:6379`));
    expect(named('10.0.0.1')).toBe('10.0.0.1:6379');
    expect(named('fe80::1')).toBe('[fe80::1]:6379');
  });
});

describe('the database', () => {
  it('is named, and that of a node of a Cluster is an error', async () => {
    expect(await found(database, { ...withInfo(), database: 5 })).toEqual([
      { level: 'ok', text: 'Locks are in database 5.' },
    ]);
    expect(await found(database, withInfo('cluster_enabled:1'))).toEqual([
      {
        level: 'error',
        text: 'It is a node of a Cluster: keys of other nodes cannot be locked over it.',
        remedy: 'Give --cluster here, and the application a Cluster client.',
      },
    ]);
    expect(await found(database, { isClusterNode: true })).toEqual([]);
  });
});

describe('the eviction policy', () => {
  const OK: Found = { level: 'ok', text: 'The eviction policy is noeviction.' };
  const FULL = 'Its memory is full: locks are refused (503).';
  const noeviction = 'maxmemory_policy:noeviction';
  const config = (value: Answer) => ({
    ask: async (...words: readonly string[]): Promise<Answer> =>
      words.join(' ') === 'config get maxmemory-policy' ? value : REFUSED,
  });

  it.each<[string, object, Found]>([
    ['a list', ['maxmemory-policy', 'noeviction'], OK],
    ['an object', { 'maxmemory-policy': 'noeviction' }, OK],
    ['a Map', new Map([['maxmemory-policy', 'noeviction']]), OK],
  ])('is that of CONFIG, where INFO does not name it, also as %s', async (_, value, finding) => {
    expect(await found(eviction, { ...withInfo(), ...config(answered(value)) })).toEqual([finding]);
  });

  it('of INFO counts, whatever CONFIG answers', async () => {
    const other = config(answered(['maxmemory-policy', 'allkeys-lru']));
    expect(await found(eviction, { ...withInfo(noeviction), ...other })).toEqual([OK]);
  });

  it('is not known where both are silent, with the reason', async () => {
    for (const silent of [config(REFUSED), config(answered(null))]) {
      expect(await found(eviction, { ...withoutInfo, ...silent })).toEqual([
        notKnown('The eviction policy'),
      ]);
      expect(await found(eviction, { ...withInfo(), ...silent })).toEqual([
        notKnown('The eviction policy', 'INFO does not name it'),
      ]);
    }
  });

  it.each<[number, readonly Found[]]>([
    [899, []],
    [
      900,
      [
        {
          level: 'warning',
          text: '90 % of its memory are used: when it is full, locks are refused (503).',
          remedy: 'Raise maxmemory, or remove data.',
        },
      ],
    ],
    ...[1000, 1200].map((used): [number, readonly Found[]] => [
      used,
      [
        {
          level: 'error',
          text: FULL,
          remedy: `Raise maxmemory (CONFIG SET maxmemory ${String(2 * used)}), or remove data.`,
        },
      ],
    ]),
  ])('comes with what %d of 1000 bytes mean', async (used, findings) => {
    const info = withInfo(noeviction, 'maxmemory:1000', `used_memory:${String(used)}`);
    expect(await found(eviction, info)).toEqual([OK, ...findings]);
  });
});

describe('a setting', () => {
  it('is a text, or not known', () => {
    expect(settingIn(answered([['save', '60 1']]), 'save')).toBe('60 1');
    for (const value of [null, 'OK', {}, new Map(), [], { save: 7 }])
      expect(settingIn(answered(value), 'save')).toBeUndefined();
  });
});

describe('a server that loads its data', () => {
  it('is to be waited for', async () => {
    const server = {
      ...withInfo('loading:1'),
      ...{ epoch: async () => answered(null), ask: async () => REFUSED },
    };
    expect((await found(persistence, server))[1]).toEqual({
      level: 'warning',
      text: 'It is loading its data: locks are refused until then.',
      remedy: 'Wait for it.',
    });
  });
});

describe('the time of an answer', () => {
  /** Each question takes one of these times. */
  const taking = (...times: readonly number[]) => {
    const runtime = new VirtualRuntime();
    const left = [...times];
    const ask = async (): Promise<Answer> => {
      runtime.block(left.shift() ?? 0);
      return answered(['1', '0']);
    };
    return { runtime, ask };
  };
  const SLOW = 'Each lock takes at least that long.';
  const FAILS = 'With the default "nodeTimeout" of 1 s, many locks fail (503).';

  const remedy = 'Use a server that is nearer or less busy';

  it.each([
    [0, { level: 'ok', text: 'An answer takes less than 1 ms.' }],
    [1, { level: 'ok', text: 'An answer takes 1 ms.' }],
    [49, { level: 'ok', text: 'An answer takes 49 ms.' }],
    [50, { level: 'warning', text: `An answer takes 50 ms. ${SLOW}`, remedy: `${remedy}.` }],
    [499, { level: 'warning', text: `An answer takes 499 ms. ${SLOW}`, remedy: `${remedy}.` }],
    [
      500,
      {
        ...{ level: 'error', text: `An answer takes 500 ms. ${FAILS}` },
        remedy: `${remedy}, or raise "nodeTimeout".`,
      },
    ],
  ])('is judged by the median: %d ms', async (median, finding) => {
    expect(await found(roundTrip, taking(900, 0, median, median, 3_000))).toEqual([finding]);
  });

  it('is not known where TIME is refused', async () => {
    expect(
      await found(roundTrip, { runtime: new VirtualRuntime(), ask: async () => REFUSED }),
    ).toEqual([notKnown('How long an answer takes')]);
  });
});

describe('a message', () => {
  const NAMES = { main: 'a' };
  const lost = (why: string): Found => ({
    level: 'warning',
    text: `No message arrives (${why}): callers that wait poll every 500 ms instead, and "show" knows no methods and no waiting callers.`,
    remedy:
      'Allow the Redis user +subscribe +publish +pubsub|numsub &holdfast:*, and proxies to pass pub/sub on.',
  });
  const arrives: Found = { level: 'ok', text: 'A message arrives.' };
  const sharded: Found = { level: 'ok', text: 'A message arrives (sharded pub/sub).' };
  const plainOnly: Found = {
    level: 'warning',
    text: 'Sharded pub/sub does not work (no shard), so plain pub/sub is used: a process that dies while it waits costs the next one up to 1 s.',
    remedy:
      'Use Redis 7 or later, and allow the Redis user +ssubscribe +spublish +pubsub|shardnumsub &holdfast:*.',
  };

  it.each<[string, object, Found]>([
    ['one Redis', {}, arrives],
    ['one Redis without messages', { plain: 'no' }, lost('no')],
    ['one Redis without sharded messages', { shard: 'no shard' }, arrives],
    ['a node of a Cluster', { isClusterNode: true }, sharded],
    ['a node without plain messages', { isClusterNode: true, plain: 'no' }, sharded],
    ['a node without sharded messages', { isClusterNode: true, shard: 'no shard' }, plainOnly],
    [
      'a node without messages',
      { isClusterNode: true, shard: 'no shard', plain: 'no' },
      lost('no'),
    ],
    [
      'a node without a key of the prefix',
      { isClusterNode: true, names: undefined, shard: 'x' },
      arrives,
    ],
    [
      'a server that ends connections',
      { plain: 'Connection is closed.' },
      lost('the server, or a proxy before it, ends each connection at once'),
    ],
  ])('is tried at %s', async (_, settings, finding) => {
    const { isClusterNode, plain, shard, names } = {
      ...{ isClusterNode: false, names: NAMES as object | undefined },
      ...{ plain: undefined, shard: undefined },
      ...settings,
    };
    const trials = {
      trialNames: () => names,
      tryMessage: async (given?: object) => (given === undefined ? plain : shard),
    };
    expect(await found(pubSub, { isClusterNode, trials })).toEqual([finding]);
  });
});

describe('the restart guard', () => {
  const guard = async (value: Answer, kind?: Kind) =>
    found(restartGuard, { ...withInfo('run_id:one'), epoch: async () => value }, kind);
  const odd = [{ level: 'error', text: expect.stringContaining('"lock:{epoch}"') }];

  it('is not known where its key cannot be read', async () => {
    expect(await guard(REFUSED)).toEqual([notKnown('The restart guard')]);
  });

  it.each([['one 7 8'], ['one'], [['one 7']]])('did not write %j', async (value) => {
    expect(await guard(answered(value))).toMatchObject(odd);
  });

  it('is over at the moment that it wrote', async () => {
    const nowMs = new VirtualRuntime().now().wallMs;
    const at = async (ms: number) => guard(answered(`one ${String(ms * 1_000)}`));
    expect(await at(nowMs)).toMatchObject([{ level: 'ok' }]);
    expect(await at(nowMs + 1)).toMatchObject([
      { level: 'error', text: expect.stringContaining('for another 1 ms') },
    ]);
  });
});

describe('the rights', () => {
  const tried = async (answerOf: (...command: readonly unknown[]) => Answer) =>
    found(rights, {
      trials: {
        trialNames: () => ({ main: 'm', fence: 'f', queue: 'q', holders: 'h', once: 'o' }),
      },
      ask: async (...command: readonly unknown[]) => answerOf(...command),
    });
  const OK = [{ level: 'ok', text: 'The Redis user may do all that locks and operators need.' }];
  const refusing =
    (name: string, answer: Answer) =>
    (command: unknown): Answer =>
      command === 'acl' ? answered('app') : command === name ? answer : answered('OK');

  it('lack a command that the server does not have, or that is forbidden', async () => {
    expect(await tried(refusing('xadd', failed("ERR unknown command 'xadd'")))).toEqual([
      {
        level: 'warning',
        text: 'The server has no XADD. This program and LockAdmin cannot do all that they should. Locks are not affected.',
        remedy: 'Undo rename-command, or use a server that has these commands.',
      },
    ]);
    expect(await tried(refusing('zadd', REFUSED))).toEqual([
      {
        level: 'error',
        text: 'The Redis user lacks +zadd. Locks are refused (503), all or those that need it.',
        remedy: 'ACL SETUSER app +zadd',
      },
    ]);
    expect(await tried(refusing('publish', REFUSED))).toMatchObject([
      {
        level: 'warning',
        text: expect.stringMatching(/poll every 500 ms instead of being woken\.$/),
      },
    ]);
  });

  it.each<[string, Answer]>([
    ['an answer that reads like a refusal', answered('NOPERM')],
    ['a connection that ended', { status: 'failed', kind: 'connection', message: 'NOPERM' }],
    ['another error', failed('ERR no such key')],
    ['a full memory', failed('OOM command not allowed when used memory > maxmemory.')],
  ])('are not missed because of %s', async (_, answer) => {
    expect(await tried(refusing('zadd', answer))).toEqual(OK);
  });

  it('to WAIT alone are not missed', async () => {
    expect(await tried(refusing('wait', REFUSED))).toMatchObject([
      { level: 'ok', text: expect.stringContaining('the option "replicas" cannot be used') },
    ]);
    expect(await tried(refusing('client', REFUSED))).toEqual([
      { level: 'ok', text: 'The Redis user may do all that locks need.' },
    ]);
  });

  it('to keys are patterns, of which a prefix with a hash tag needs one', () => {
    expect(keyPatterns('lock:')).toEqual(['~lock:*', '~{lock:*']);
    expect(keyPatterns('{app}:lock:')).toEqual(['~{app}:lock:*']);
  });
});

describe('the keys', () => {
  it('are not known where the server refuses to list them, with the reason', async () => {
    expect(await found(keys, { ask: async () => REFUSED })).toEqual([
      notKnown('What is under this prefix'),
    ]);
  });

  it('are listed for two seconds, and their values read of a thousand', async () => {
    const runtime = new VirtualRuntime();
    let pages = 0;
    let values = 0;
    const ask = async (command: string): Promise<Answer> => {
      if (command === 'scan') {
        pages += 1;
        runtime.block(1_000);
        const names = Array.from(
          { length: 500 },
          (_, index) => `lock:${String(pages)}:${String(index)}`,
        );
        return answered(['7', names]);
      }
      if (command === 'get') values += 1;
      return answered(command === 'type' ? 'string' : 'holdfast:x');
    };
    expect(await found(keys, { runtime, ask })).toMatchObject([
      { text: expect.stringMatching(/^1500 keys held, .* there are too many\.$/) },
    ]);
    expect({ pages, values }).toEqual({ pages: 3, values: 1_000 });
  });
});
