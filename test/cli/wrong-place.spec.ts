import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { LockService } from 'nestjs-holdfast';
import { Redis } from 'ioredis';
import { eventually } from '../support/eventually.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisServer } from '../support/redis-server.js';
import { run } from './program.js';

let server: RedisServer;
let locks: LockService;
let client: Redis;

beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(`${server.url}/3`, { keyPrefix: 'shop:', lazyConnect: true });
  locks = new LockService({ redis: client });
  await locks.open();
  await locks.acquire('order:42');
  const at = ['--redis', `${server.url}/3`, '--prefix', 'shop:lock:'];
  await eventually(async () => (await run(['instances', '--json', ...at])).stdout.includes('"id"'));
});

afterAll(async () => {
  await locks.shutdown(0);
  client.disconnect();
  await server.stop();
});

describe('a place where no service reports', () => {
  const HINT = 'Services report in database 3, prefix shop:lock:.';

  it.each([
    ['another database', '/0', 'shop:lock:'],
    ['the prefix without that of the ioredis client', '/3', 'lock:'],
  ])('is told from one where nothing is held: %s', async (_, path, prefix) => {
    const at = ['--redis', server.url + path, '--prefix', prefix];
    for (const format of [[], ['--json']]) {
      const { code, stdout, stderr } = await run(['list', ...format, ...at]);
      expect(code).toBe(1);
      expect(stdout).toBe(format.length === 0 ? '' : '[]\n');
      expect(stderr).toContain('No service reports here: another server, database or prefix?');
      expect(stderr).toContain(HINT);
      expect(stderr).toContain('the keyPrefix of the ioredis client');
    }
    const { stdout } = await run(['doctor', '--json', ...at]);
    const { findings } = JSON.parse(stdout) as { findings: readonly object[] };
    expect(findings).toContainEqual(
      expect.objectContaining({
        check: 'services',
        level: 'warning',
        text: expect.stringContaining(HINT),
      }),
    );
  });

  it('is not where a service reports and holds nothing', async () => {
    const at = ['--redis', `${server.url}/3`, '--prefix', 'shop:lock:'];
    expect(await run(['list', 'none', ...at])).toMatchObject({
      code: 0,
      stderr: expect.not.stringContaining('No service reports'),
    });
  });
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
          stderr: expect.stringContaining(`is a replica of 127.0.0.1:${server.port}`),
        });
      const { code, stdout } = await run(['doctor', '--json', ...at]);
      const { findings } = JSON.parse(stdout) as { findings: readonly { level: string }[] };
      expect(code).toBe(4);
      expect(findings.filter(({ level }) => level !== 'ok')).toMatchObject([
        { check: 'role', level: 'error' },
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
        stderr: expect.stringContaining('No service reports here'),
      });
    } finally {
      await cluster.stop();
    }
  });
});
