import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { LockAdmin } from '../../lib/admin/lock-admin.js';
import { RedisServers } from '../../lib/tools/redis-servers.js';
import type { LockModuleOptions } from '../../lib/options/lock-module-options.js';
import { eventually } from '../support/eventually.js';
import { Locks } from '../support/locks.js';
import { RedisServer } from '../support/redis-server.js';

const PASSWORD = 's:e/c@r?et%';

let folder: string;
let path: string;
let server: RedisServer;
let opened: Locks[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast socket-'));
  path = join(folder, 'redis.sock');
  server = await RedisServer.start({ config: { unixsocket: `"${path}"` } });
  await server.command('ACL', 'SETUSER', 'locks', 'on', `>${PASSWORD}`, '+@all', '~*', '&*');
});

afterEach(async () => {
  await Promise.all(opened.map((locks) => locks.shutdown(0)));
  opened = [];
});

afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

async function open(redis: LockModuleOptions['redis']): Promise<Locks> {
  const locks = new Locks({ redis });
  opened.push(locks);
  await locks.open();
  return locks;
}

/** In which database a lock is, and how its connections came. */
async function foundOf(locks: Locks): Promise<object> {
  const lock = await locks.acquire('key');
  const other = await open({ path, db: 2 });
  const inTwo = (await other.inspect('key')).held;
  const clients = String(await server.command('CLIENT', 'LIST'));
  const own = clients.split('\n').filter((line) => line.includes('name=holdfast'));
  await lock.release();
  const isBySocket = own.every((line) => / flags=\S*U/.test(line));
  const users = new Set(own.map((line) => / user=(\S+)/.exec(line)?.[1]));
  return { inTwo, isBySocket, users: [...users].sort() };
}

describe('a Unix socket', () => {
  it.each([
    ['unix:', '', '?db=2', { inTwo: true, users: ['default'] }],
    ['redis+unix:', '', '', { inTwo: false, users: ['default'] }],
    [
      'unix:',
      `locks:${encodeURIComponent(PASSWORD)}@`,
      '?db=2',
      { inTwo: true, users: ['default', 'locks'] },
    ],
  ])('is reached by a URL: %s//%s…%s', async (scheme, user, query, expected) => {
    const locks = await open(`${scheme}//${user}${encodeURI(path)}${query}`);
    expect(await foundOf(locks)).toEqual({ ...expected, isBySocket: true });
  });

  it('is reached by options, and by a client', async () => {
    const client = new Redis({ path, db: 2, lazyConnect: true });
    for (const redis of [{ path, db: 2 }, client])
      expect(await foundOf(await open(redis))).toMatchObject({ inTwo: true, isBySocket: true });
    client.disconnect();
  });

  it('wakes waiting callers', async () => {
    const [one, two] = [await open(`unix://${encodeURI(path)}`), await open({ path })];
    const lock = await one.acquire('key', { ttl: '1m' });
    const waiting = two.acquire('key', { wait: '20s' });
    const admin = new LockAdmin(one);
    await eventually(async () => (await admin.describe('key')).line.length === 1);
    await lock.release();
    await (await waiting).release();
  });

  it('that does not exist is named by its path', async () => {
    const locks = await open(`unix://u:${encodeURIComponent(PASSWORD)}@/nowhere/redis.sock`);
    const error: unknown = await locks.acquire('key').catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      nodes: [{ node: '/nowhere/redis.sock', message: 'connect ENOENT /nowhere/redis.sock' }],
    });
  });
});

describe('a URL of a Unix socket that leads nowhere', () => {
  it.each([
    ['unix://', `must be a URL such as 'redis://localhost:6379', received "unix://"`],
    ['unix://run/redis.sock', 'received "unix://run/redis.sock". The path begins with a slash'],
    ['unix:///', 'received "unix:///". The path'],
    ['unix:///run/redis.sock?password=S3CRET', 'received "unix:///run/redis.sock?password=***"'],
    ['unix://u:S3%CRET@/run/redis.sock', '@/run/redis.sock". The path begins'],
    ['unix:///run/redis.sock?db=two', 'names the database "two" of /run/redis.sock'],
    ['unix:///run/redis.sock?db=', 'names the database "" of /run/redis.sock'],
  ])('is a mistake in the configuration: %s', (redis, problem) => {
    expect(() => new Locks({ redis })).toThrow(problem);
    expect(() => new Locks({ redis })).not.toThrow(/S3|CRET/);
  });

  it('is that of a node of a Cluster', () => {
    const settings = { isCluster: true, keyPrefix: 'lock:', timeLimitMs: 1_000 };
    expect(() => new RedisServers({ urls: ['unix:///run/redis.sock'], ...settings })).toThrow(
      'The nodes of a Cluster have hosts and ports, and no Unix socket: received the path "/run/redis.sock".',
    );
  });
});
