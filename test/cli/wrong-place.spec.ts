import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { LockService } from 'nestjs-holdfast';
import { Redis } from 'ioredis';
import { deferred, eventually } from '../support/eventually.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisServer } from '../support/redis-server.js';
import { FakeTerminal, run, runIn } from './program.js';

let server: RedisServer;
let locks: LockService;
let client: Redis;
let onScreen: FakeTerminal | undefined;

beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(`${server.url}/3`, { keyPrefix: 'shop:', lazyConnect: true });
  locks = new LockService({ redis: client });
  await locks.open();
  await locks.acquire('order:42');
  const at = ['--redis', `${server.url}/3`, '--prefix', 'shop:lock:'];
  await eventually(async () => (await run(['instances', '--json', ...at])).stdout.includes('"id"'));
});

afterEach(() => onScreen?.stop());

afterAll(async () => {
  await locks.shutdown(0);
  client.disconnect();
  await server.stop();
});

describe('a place where no service reports', () => {
  const QUESTION = '0 keys and 0 services here: another server, database or prefix?';
  const HINT = 'Services report in database 3, prefix shop:lock:.';

  it.each([
    ['another database', '/0', 'shop:lock:', 'REDIS/3'],
    ['the prefix without that of the ioredis client', '/3', 'lock:', '--prefix shop:lock:'],
    ['both', '', 'lock:', 'REDIS/3 --prefix shop:lock:'],
  ])('differs from one where nothing is held: %s', async (_, path, prefix, options) => {
    const give = `Give ${options.replace('REDIS', `--redis ${server.url}`)}`;
    const at = ['--redis', server.url + path, '--prefix', prefix];
    for (const format of [[], ['--json']]) {
      const { code, stdout, stderr } = await run(['list', ...format, ...at]);
      expect(code).toBe(1);
      expect(stdout).toBe(format.length === 0 ? '' : '[]\n');
      expect(stderr).toContain(`${QUESTION} ${HINT}\n`);
      expect(stderr).toContain('the keyPrefix of the ioredis client');
      expect(stderr.endsWith(`${give}\n`)).toBe(true);
    }
    const { stdout } = await run(['doctor', '--json', ...at]);
    const { findings } = JSON.parse(stdout) as { findings: readonly object[] };
    expect(findings).toContainEqual(
      expect.objectContaining({
        check: 'services',
        level: 'warning',
        text: `${QUESTION} ${HINT}`,
        remedy: expect.stringMatching(new RegExp(`${give}$`)),
      }),
    );
    // What it says is what to give.
    const given = give.split(' ').slice(1);
    const right = await run([
      'list',
      ...(given.includes('--redis') ? [] : at.slice(0, 2)),
      ...(given.includes('--prefix') ? [] : at.slice(2)),
      ...given,
    ]);
    expect(right).toMatchObject({ code: 0, stdout: expect.stringMatching(/\nheld +order:42 /) });
  });

  it.each([
    ...[
      ['list', 1],
      ['show order:42', 1],
      ['watch', 1],
      ['top', 1],
      ['instances', 1],
      ['audit', 1],
    ],
    ...[
      ['release order:42 -n', 1],
      ['release-instance one -n', 1],
      ['forget order:42 -n', 1],
    ],
    ...[['release order:42 --yes --if-holder 3f2a9c1d0e4b --reason x', 1]],
    ...[
      ['release-instance one --yes --reason x', 1],
      ['forget order:42 --yes --reason x', 1],
    ],
  ] as const)('is named by %s', async (command, code) => {
    for (const format of [[], ['--json']]) {
      const given = [...command.split(' '), ...format, '--redis', server.url];
      const { code: ended, stderr } = await run(given);
      expect(ended).toBe(code);
      expect(stderr).toMatch(/ here: another server, database or prefix\? Services report in/);
      expect(stderr.endsWith(`Give --redis ${server.url}/3 --prefix shop:lock:\n`)).toBe(true);
    }
  });

  it.each(['watch', 'top'])('is named below the empty table of %s', async (command) => {
    const terminal = Object.assign(new FakeTerminal(), {
      isTty: true,
      window: { columns: 80, rows: 24 },
    });
    const isNamed = deferred();
    terminal.onWrite = (all) => {
      if (all.includes('--prefix shop:lock:')) isNamed.resolve();
    };
    onScreen = terminal;
    const ended = runIn(terminal, command, '--redis', server.url);
    await isNamed.promise;
    terminal.press('q');
    expect(await ended).toBe(0);
    expect(terminal.stdout).toContain('No service reports here: another server, database');
  });

  it('is described without 0 keys where keys are held', async () => {
    await server.command('SET', 'lock:theirs', 'x', 'PX', 60_000);
    const { stdout } = await run(['doctor', '--json', '--redis', server.url]);
    await server.command('DEL', 'lock:theirs');
    expect(stdout).toContain(
      '"No service reports here: another server, database or prefix? Services',
    );
  });

  it.each(['list none', 'watch none', 'top', 'instances --unresponsive', 'audit'])(
    'is not where a service reports, and nothing is found by %s',
    async (command) => {
      const at = ['--redis', `${server.url}/3`, '--prefix', 'shop:lock:'];
      for (const format of [[], ['--json']])
        expect(await run([...command.split(' '), ...format, ...at])).toMatchObject({
          code: 0,
          stderr: expect.not.stringMatching(/0 services|No service reports/),
        });
    },
  );
});

describe('a place without a prefix', () => {
  it('is named by list, which then finds it with the option that it printed', async () => {
    const bare = await RedisServer.start();
    const at = ['--redis', bare.url];
    const service = new LockService({ redis: bare.url, keyPrefix: '' });
    try {
      await service.open();
      await service.acquire('order:42');
      await eventually(async () =>
        (await run(['list', ...at])).stderr.includes("Services report in database 0, prefix ''."),
      );
      expect((await run(['list', ...at])).stderr).toMatch(/Give --prefix ''\n$/);
      for (const empty of [['--prefix', ''], ['--prefix=']])
        expect(await run(['list', ...at, ...empty])).toMatchObject({
          code: 0,
          stdout: expect.stringMatching(/\nheld +order:42 /),
          stderr: expect.stringMatching(/, prefix ''\n$/),
        });
    } finally {
      await service.shutdown(0);
      await bare.stop();
    }
  });
});

describe('a key that is given with the prefix', () => {
  const at = (): readonly string[] => ['--redis', `${server.url}/3`, '--prefix', 'shop:lock:'];

  it.each(['show', 'release -n', 'forget -n'])(
    '%s prints the key that was meant',
    async (command) => {
      const [name = '', ...options] = command.split(' ');
      const hint = 'Did you mean order:42? Give the key without the prefix shop:lock:\n';
      const wrong = await run([name, 'shop:lock:order:42', ...options, ...at()]);
      expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining(hint) });
      const unknown = await run([name, 'shop:lock:order:43', ...options, ...at()]);
      expect(unknown).toMatchObject({ code: 1, stderr: expect.not.stringContaining('Did you') });
    },
  );
});

describe('a replica', () => {
  it('is refused by the commands, and the only complaint of doctor', async () => {
    const replica = await RedisServer.start({ replicaOf: server });
    const at = ['--redis', `${replica.url}/3`, '--prefix', 'shop:lock:'];
    try {
      for (const command of ['list', 'show order:42', 'instances', 'top'])
        expect(await run([...command.split(' '), ...at])).toMatchObject({
          code: 3,
          stdout: '',
          stderr: expect.stringMatching(
            new RegExp(
              `is a replica of 127\\.0\\.0\\.1:${server.port}: .* --redis ${server.url}/3\n$`,
            ),
          ),
        });
      const { code, stdout } = await run(['doctor', '--json', ...at]);
      const { findings } = JSON.parse(stdout) as { findings: readonly { level: string }[] };
      expect(code).toBe(4);
      expect(findings.filter(({ level }) => level !== 'ok')).toMatchObject([
        {
          ...{ check: 'role', level: 'error' },
          remedy: `Give the address of the master: --redis ${server.url}/3`,
        },
      ]);
    } finally {
      await replica.stop();
    }
  });
});

describe('a node of a Cluster that is given as one Redis', () => {
  it('is refused by the commands, which name the option', async () => {
    const cluster = await RedisCluster.start();
    try {
      for (const command of ['list', 'show order:42'])
        expect(await run([...command.split(' '), '--redis', cluster.nodes[0]!.url])).toMatchObject({
          code: 3,
          stdout: '',
          stderr: expect.stringContaining('--cluster'),
        });
      const at = ['--redis', cluster.nodes[0]!.url, '--cluster'];
      expect(await run(['list', ...at])).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('0 keys and 0 services here'),
      });
    } finally {
      await cluster.stop();
    }
  });
});
