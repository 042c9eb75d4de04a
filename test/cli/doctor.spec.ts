import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { LockModuleOptions } from '../../lib/options/lock-module-options.js';
import { RIGHTS } from '../../packages/cli/lib/doctor/rights.js';
import type { Finding, Level } from '../../packages/cli/lib/doctor/finding.js';
import { keyNames } from '../../lib/store/redis/scripts/key-names.js';
import { Locks } from '../support/locks.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisServer } from '../support/redis-server.js';
import { documentedRights } from '../store/documented-rights.js';
import { run } from './program.js';

interface Examined {
  readonly code: number | null;
  readonly healthy: boolean;
  readonly reachable: number;
  readonly findings: readonly Finding[];
}

async function doctor(...args: readonly string[]): Promise<Examined> {
  const { code, stdout, stderr } = await run(['doctor', '--json', ...args]);
  expect(stderr).toBe('');
  return { code, ...(JSON.parse(stdout) as Omit<Examined, 'code'>) };
}

const of = ({ findings }: Examined, check: string, level?: Level): readonly Finding[] =>
  findings.filter((each) => each.check === check && (level ?? each.level) === each.level);

/** `check: level` of everything that is not in order, but for how long an answer takes: this machine may be busy. */
const complaints = ({ findings }: Examined): readonly string[] =>
  findings
    .filter(({ check, level }) => level !== 'ok' && check !== 'round trip')
    .map(({ check, level }) => `${check}: ${level}`);

/** It prints a hint where INFO is forbidden; the program itself keeps that from the terminal. */
const silenceIoredis = (): void => {
  jest.spyOn(console, 'warn').mockImplementation(() => undefined);
};

const BESIDE_PERSISTENCE = 'persistence: warning';

describe('doctor at one Redis', () => {
  let server: RedisServer;
  let opened: Locks[] = [];

  const open = (options: Partial<LockModuleOptions> = {}): Locks => {
    const locks = new Locks({ redis: server.url, ...options });
    opened.push(locks);
    return locks;
  };

  beforeAll(async () => {
    server = await RedisServer.start();
  });

  afterEach(async () => {
    await Promise.all(opened.map((locks) => locks.shutdown(0)));
    opened = [];
    jest.restoreAllMocks();
    await server.command('FLUSHALL');
    await server.command('CONFIG', 'SET', 'maxmemory', '0', 'maxmemory-policy', 'noeviction');
  });

  afterAll(async () => {
    await server.stop();
  });

  const redis = (user = ''): readonly string[] => [
    '--redis',
    `redis://${user}127.0.0.1:${server.port}`,
  ];

  it('finds nothing wrong with a new one, but that nothing is written to disk; and leaves nothing behind', async () => {
    const examined = await doctor(...redis());
    expect(examined).toMatchObject({ code: 0, healthy: true, reachable: 1 });
    expect(complaints(examined)).toEqual([BESIDE_PERSISTENCE]);
    expect(new Set(examined.findings.map(({ check }) => check))).toEqual(
      new Set([
        'version',
        'role',
        'database',
        'rights',
        'eviction',
        'persistence',
        'restart guard',
        'round trip',
        'pub/sub',
        'keys',
        'clocks',
        'services',
        'grants',
      ]),
    );
    expect(await server.command('KEYS', '*')).toEqual([]);
  });

  it('tries each right by a command that needs it, and that the server accepts', async () => {
    const names = keyNames('lock:')('trial');
    for (const { name, trial } of RIGHTS) {
      const [command, ...args] = trial(names);
      const words = name.split('|');
      expect([command, ...args].slice(0, words.length)).toEqual(words);
      const reply: unknown = await server.command(command, ...args).catch(String);
      if (name === 'evalsha') expect(reply).toMatch(/NOSCRIPT/);
      else expect([name, String(reply)]).toEqual([name, expect.not.stringMatching(/Error/)]);
      for (const key of Object.values(names))
        expect(await server.command('PTTL', key)).toBeLessThanOrEqual(1_000);
      // It would be a lock that never ends.
      expect(await server.command('PTTL', names.main)).not.toBe(-1);
    }
    expect(await server.command('KEYS', '*')).toEqual([]);
  });

  it('prints for people: server by server, what is wrong and what to do', async () => {
    const { stdout, stderr } = await run(['doctor', ...redis()], {
      window: { columns: 70, rows: 40 },
    });
    expect(stderr).toBe(`Redis at 127.0.0.1:${server.port}, prefix lock:\n`);
    expect(stdout).toMatch(new RegExp(`^127\\.0\\.0\\.1:${server.port}\n  ok       version `));
    expect(stdout).toMatch(
      / {2}warning {2}persistence +Nothing is written to disk: .*\n +→ Set appendonly/s,
    );
    expect(stdout).toMatch(/\nTogether\n.*\n\nNo errors, 1 warning\n$/s);
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(70);
  });

  it('knows an eviction policy that costs locks, and a full memory', async () => {
    await server.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
    expect(complaints(await doctor(...redis()))).toContain('eviction: warning');
    await server.command('CONFIG', 'SET', 'maxmemory', '1000mb');
    const examined = await doctor(...redis());
    expect(examined).toMatchObject({ code: 4, healthy: false });
    expect(of(examined, 'eviction')).toEqual([
      expect.objectContaining({
        level: 'error',
        text: 'The eviction policy is allkeys-lru: when memory is full, locks that are held vanish.',
        remedy: expect.stringContaining('maxmemory-policy noeviction'),
      }),
    ]);
    await server.command('CONFIG', 'SET', 'maxmemory', '1', 'maxmemory-policy', 'noeviction');
    const full = await doctor(...redis());
    expect(complaints(full)).toEqual(expect.arrayContaining(['eviction: error', 'grants: error']));
    // Whom it refuses has the right all the same.
    expect(complaints(full).filter((each) => each.startsWith('rights'))).toEqual([]);
  });

  it('counts locks, and finds keys of other software', async () => {
    const locks = open();
    await locks.acquire('order:1');
    await locks.acquire('order:2', { mode: 'shared' });
    await server.command('SET', 'lock:config', 'x');
    await server.command('HSET', 'lock:cache', 'a', 'b');
    await server.command('SET', '{lock:order:1}:queue', 'x');
    const examined = await doctor(...redis());
    expect(examined.code).toBe(4);
    const [count, types, endless] = of(examined, 'keys');
    expect(count?.text).toMatch(/^3 keys held, 1 key waited for/);
    expect(types).toMatchObject({ level: 'error' });
    expect(types?.text).toContain('"lock:cache" is a hash');
    expect(types?.text).toContain('"{lock:order:1}:queue" is a string');
    expect(endless).toMatchObject({
      level: 'warning',
      text: expect.stringContaining('at "lock:config": locks of this key are never granted'),
    });
    expect(of(await doctor(...redis(), '--prefix', 'other:'), 'keys')).toHaveLength(1);
  });

  it('writes the ACL line that is missing', async () => {
    silenceIoredis();
    const user = async (...rights: string[]): Promise<void> => {
      await server.command('ACL', 'SETUSER', 'app', 'reset', 'on', '>topsecret', ...rights);
    };
    const remedies = async (): Promise<readonly (string | undefined)[]> => {
      const examined = await doctor(...redis('app:topsecret@'));
      expect(JSON.stringify(examined)).not.toContain('topsecret');
      return examined.findings
        .filter(({ check }) => check === 'rights')
        .map(({ level, remedy }) => `${level}: ${remedy ?? ''}`);
    };
    const whole = ['~lock:*', '~{lock:*', '&holdfast:*', '+@all'];
    await user(...whole);
    expect(await remedies()).toEqual(['ok: ']);
    await user(...whole, '-zadd', '-publish', '-info', '-scan', '-wait');
    expect(await remedies()).toEqual([
      'error: ACL SETUSER app +zadd',
      'warning: ACL SETUSER app +publish',
      'warning: ACL SETUSER app +info',
      'warning: ACL SETUSER app +scan',
      'ok: ',
    ]);
    await user('~lock:*', '&holdfast:*', '+@all');
    expect((await remedies())[0]).toBe('error: ACL SETUSER app ~lock:* ~{lock:*');
    await user('~lock:*', '~{lock:*', 'resetchannels', '+@all');
    expect(await remedies()).toEqual(['warning: ACL SETUSER app &holdfast:*']);
    await user(...whole, '-subscribe');
    expect(complaints(await doctor(...redis('app:topsecret@')))).toContain('pub/sub: warning');
  });

  it('is content with the rights that the documentation lists, and says what operators lack', async () => {
    const listed = await documentedRights(server);
    await server.command('ACL', 'SETUSER', 'app', 'reset', 'on', '>topsecret', ...listed);
    const examined = await doctor(...redis('app:topsecret@'));
    expect(of(examined, 'rights', 'error')).toEqual([]);
    expect(of(examined, 'grants', 'error')).toEqual([]);
    const tried = RIGHTS.filter(({ purpose }) => !['operators', 'replicas'].includes(purpose)).map(
      ({ name }) => `+${name}`,
    );
    const commands = listed.filter((each) => each.startsWith('+') && each !== '+client|setinfo');
    expect([...tried, '+subscribe'].sort()).toEqual([...commands].sort());
  });

  it('says what it could not find out where INFO and CONFIG are forbidden', async () => {
    silenceIoredis();
    await server.command(
      'ACL',
      'SETUSER',
      'app',
      'reset',
      'on',
      '>topsecret',
      '~*',
      '&*',
      '+@all',
      '-info',
      '-config',
      '-acl',
    );
    const examined = await doctor(...redis('app:topsecret@'));
    expect(complaints(examined)).toEqual([
      'version: unknown',
      'role: unknown',
      'rights: warning',
      'eviction: unknown',
      'persistence: unknown',
    ]);
    expect(of(examined, 'version')[0]?.text).toMatch(
      /^The version is not known, because the server refuses to say \(.*info/,
    );
    expect(of(examined, 'rights')[0]?.remedy).toBe('ACL SETUSER <user> +info');
    expect(examined.code).toBe(0);
  });

  it('looks at the account of the restart guard', async () => {
    const guard = async (): Promise<Finding | undefined> =>
      of(await doctor(...redis()), 'restart guard')[0];
    const locks = open({ restartGuard: { maxTtl: '60s', bootstrap: true } });
    await locks.open();
    await (await locks.acquire('order:1')).release();
    await locks.shutdown(0);
    expect(await guard()).toMatchObject({
      level: 'ok',
      text: expect.stringContaining('remembers its locks'),
    });
    await server.command('SET', 'lock:{epoch}', 'another 0');
    expect(await guard()).toMatchObject({
      level: 'warning',
      text: expect.stringContaining('was restarted since'),
    });
    await server.command('SET', 'lock:{epoch}', `another ${(Date.now() + 30_000) * 1_000}`);
    expect(await guard()).toMatchObject({
      level: 'error',
      text: expect.stringMatching(/no locks for another (29|30) s/),
    });
    await server.command('SET', 'lock:{epoch}', 'x');
    expect(await guard()).toMatchObject({
      level: 'error',
      remedy: expect.stringContaining('Delete it'),
    });
  });

  it('reports a replica, and a server that is not there', async () => {
    const replica = await RedisServer.start({ replicaOf: server });
    const examined = await doctor('--redis', replica.url);
    await replica.stop();
    expect(examined.code).not.toBe(0);
    expect(JSON.stringify(examined.findings)).toMatch(/replica|READONLY|slave/i);
    const away = await doctor('--redis', 'redis://:topsecret@127.0.0.1:1');
    expect(away).toMatchObject({ code: 3, healthy: false, reachable: 0 });
    expect(away.findings).toMatchObject([
      {
        check: 'connection',
        level: 'error',
        server: '127.0.0.1:1',
        text: expect.stringContaining('ECONNREFUSED'),
      },
    ]);
    expect(JSON.stringify(away)).not.toContain('topsecret');
  });

  it('reports a password that is missing, and a database that is not there', async () => {
    const guarded = await RedisServer.start({ config: { requirepass: 'topsecret' } });
    const examined = await doctor('--redis', guarded.url);
    await guarded.stop();
    expect(examined.code).toBe(3);
    expect(examined.findings[0]?.text).toContain('NOAUTH');
    expect((await doctor('--redis', `${server.url}/99`)).findings[0]?.text).toContain(
      'database 99',
    );
    expect(of(await doctor('--redis', `${server.url}/5`), 'database')[0]?.text).toBe(
      'Locks are in database 5.',
    );
  });
});

describe('doctor at several masters', () => {
  let servers: readonly RedisServer[];

  beforeAll(async () => {
    servers = await Promise.all([1, 2, 3].map(() => RedisServer.start()));
  });

  afterAll(async () => {
    await Promise.all(servers.map((server) => server.stop()));
  });

  const at = (...some: readonly RedisServer[]): readonly string[] =>
    some.flatMap(({ url }) => ['--redis', url]);

  it('examines each, and all together', async () => {
    const examined = await doctor(...at(...servers));
    expect(examined).toMatchObject({ code: 0, reachable: 3 });
    expect(of(examined, 'restart guard', 'warning')).toHaveLength(3);
    expect(of(examined, 'masters')).toMatchObject([
      { level: 'ok', text: '3 independent masters: 1 of them may fail.' },
    ]);
  });

  it('warns of an even number, reports one that is given twice, and one that is away', async () => {
    const [first, second, third] = servers as [RedisServer, RedisServer, RedisServer];
    expect(of(await doctor(...at(first, second)), 'masters', 'warning')).toHaveLength(1);
    const twice = await doctor(...at(first, second), '--redis', `redis://localhost:${first.port}`);
    expect(twice.code).toBe(4);
    expect(JSON.stringify(of(twice, 'grants', 'error'))).toContain('is the same server as');
    await third.kill();
    const away = await doctor(...at(...servers));
    await third.restart();
    expect(away).toMatchObject({ code: 4, reachable: 2 });
    expect(of(away, 'connection')).toMatchObject([
      { level: 'error', server: `127.0.0.1:${third.port}` },
    ]);
    expect(of(away, 'grants', 'error')).toHaveLength(1);
  });
});

describe('doctor at a Cluster', () => {
  it('examines each master', async () => {
    const cluster = await RedisCluster.start();
    try {
      const redis = ['--redis', cluster.nodes[0]!.url];
      const examined = await doctor(...redis, '--cluster');
      expect(examined).toMatchObject({ code: 0, reachable: 3 });
      expect(of(examined, 'rights', 'ok')).toHaveLength(3);
      expect(of(examined, 'pub/sub', 'ok')).toHaveLength(3);
      expect(of(examined, 'grants', 'ok')).toHaveLength(1);
      const mistaken = await doctor(...redis);
      expect(mistaken.code).toBe(4);
      expect(of(mistaken, 'database', 'error')[0]?.remedy).toContain('Give --cluster here');
    } finally {
      await cluster.stop();
    }
  });
});
