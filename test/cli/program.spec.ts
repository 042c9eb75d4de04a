import { cpSync, mkdtempSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { compiledFile, compiledProject } from '../support/compiled.js';
import { eventually } from '../support/eventually.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisServer } from '../support/redis-server.js';
import { OrdersProcess } from './orders-process.js';
import { program, run } from './program.js';

const MAIN = compiledFile(new URL('../../packages/cli/lib/main.ts', import.meta.url));

/** Of the compiled project; what `import()` loads, too, and nothing of the examples in comments. */
const IMPORT = /^(?!\s*\*).*?(?: from |import |(?:import|require)\()["']([^"']+)["']\)?;$/gm;

/** Dependencies. */
const PACKAGES = [
  ...['acorn', 'cluster-key-slot', 'diff', 'fastest-levenshtein', 'magic-string', 'ms'],
  'string-width',
];

/** Loaded when they are used, and none of them has to be there. */
const CLIENTS = ['ioredis', 'iovalkey', 'redis', '@redis/client'];

/** The file of an import in the compiled project; `undefined` for one of another package. */
function fileOf(name: string, importer: string): string | undefined {
  if (name.startsWith('.')) return join(dirname(importer), name);
  const [, entry] = /^nestjs-holdfast\/(\w+)$/.exec(name) ?? [];
  if (entry !== undefined) return join(compiledProject(), 'lib', entry, 'index.js');
  const [, other] = /^@nestjs-holdfast\/(\w+)$/.exec(name) ?? [];
  return other && join(compiledProject(), 'packages', other, 'lib/index.js');
}

describe('the program', () => {
  it('imports nothing of Nest, which need not be installed where it runs', () => {
    const seen = new Set<string>();
    const packages = new Set<string>();
    const follow = (file: string): void => {
      if (seen.has(file)) return;
      seen.add(file);
      const imports = readFileSync(file, 'utf8').matchAll(IMPORT);
      for (const [, name = ''] of imports) {
        const imported = fileOf(name, file);
        if (imported !== undefined) follow(imported);
        else if (!name.startsWith('node:')) packages.add(name);
      }
    };
    follow(MAIN);
    expect(seen.size).toBeGreaterThan(50);
    expect([...packages].sort()).toEqual([...PACKAGES, ...CLIENTS].sort());
  });

  it.each(['ioredis', 'nestjs-holdfast'])('says what to install where %s is missing', (missing) => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-cli-'));
    try {
      for (const name of ['lib', 'packages', 'package.json'])
        cpSync(join(compiledProject(), name), join(folder, name), { recursive: true });
      mkdirSync(join(folder, 'node_modules'));
      for (const name of PACKAGES)
        symlinkSync(resolve('node_modules', name), join(folder, 'node_modules', name));
      if (missing !== 'nestjs-holdfast')
        symlinkSync('..', join(folder, 'node_modules/nestjs-holdfast'));
      const { status, stdout, stderr } = spawnSync(
        process.execPath,
        [join(folder, 'packages/cli/lib/main.js'), 'list'],
        {
          encoding: 'utf8',
          env: { ...process.env, NODE_OPTIONS: '' },
        },
      );
      expect({ status, stdout, stderr }).toEqual({
        status: 2,
        stdout: '',
        stderr: `error: @nestjs-holdfast/cli needs ${missing}, which is not installed: npm install ${missing}\n`,
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('has the version of the package, and exit codes', async () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    expect(await program(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
    expect((await program(['lst'])).code).toBe(2);
    expect((await program(['list'], { REDIS_URL: 'redis://127.0.0.1:1' })).code).toBe(3);
  });
});

describe.each([
  {
    place: 'a Cluster',
    start: async () => {
      const cluster = await RedisCluster.start();
      const args = ['--cluster', '--redis', cluster.nodes[0]!.url];
      return { redis: undefined, nodes: cluster.startupNodes, args, stop: () => cluster.stop() };
    },
  },
  {
    place: 'three masters, one of them dead',
    start: async () => {
      const servers = await Promise.all([1, 2, 3].map(() => RedisServer.start()));
      await servers[2]!.kill();
      const redis = servers.map(({ url }) => url);
      const args = ['--redis', redis.join(',')];
      return {
        redis,
        nodes: undefined,
        args,
        stop: () => Promise.all(servers.map((server) => server.stop())),
      };
    },
  },
])('the program at $place', ({ start }) => {
  let at: Awaited<ReturnType<typeof start>>;
  let orders: OrdersProcess;
  let waiter: OrdersProcess;

  beforeAll(async () => {
    at = await start();
    const where = { redis: at.redis, nodes: at.nodes, nodeTimeout: '2s' } as object;
    [orders, waiter] = await Promise.all([OrdersProcess.start(where), OrdersProcess.start(where)]);
  });

  afterAll(async () => {
    await Promise.all([orders?.kill(), waiter?.kill()]);
    await at.stop();
  });

  it('lists, shows and releases', async () => {
    orders.tell('pay 7');
    await orders.says('granted');
    waiter.tell('pay 7');
    await eventually(
      async () =>
        (await run(['show', 'order:7', ...at.args])).stdout.includes(
          'Waiting: 1 caller in 1 process',
        ),
      { withinMs: 15_000 },
    );
    const listed = await run(['list', ...at.args]);
    expect(listed).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/held +order:7 .* exclusive/),
    });
    const shown = await run(['show', 'order:7', ...at.args]);
    expect(shown.stdout).toContain(`pid ${orders.pid}`);
    expect(shown.stdout.match(/OrdersService\.pay \(order:<id>\)/g)).toHaveLength(2);
    expect((await run(['instances', ...at.args, '--json'])).stdout).toContain(
      `"pid":${waiter.pid}`,
    );
    const [, holder = ''] = / {4}holder (\S+)\n/.exec(shown.stdout) ?? [];
    const released = await run([
      ...['release', 'order:7', '--if-holder', holder, '--reason', 'a test', '--yes', ...at.args],
    ]);
    expect(released).toMatchObject({
      code: 0,
      stderr: expect.not.stringContaining('error'),
      stdout: 'Released order:7. The first of 1 waiting caller gets it.\n',
    });
    await waiter.says('granted');
    expect(await orders.says('lost')).toMatchObject({ reason: 'force-released' });
    expect((await run(['audit', ...at.args])).stdout).toContain('a test');
  }, 120_000);
});
