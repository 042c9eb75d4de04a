import { afterEach, describe, expect, it } from '@jest/globals';
import { LockAdmin } from '../../lib/admin/index.js';
import { eventually } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';
import { LoggedLocks } from '../observe/log/logged.js';
import { documentedRights } from './documented-rights.js';

let ends: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of ends.toReversed()) await end();
  ends = [];
});

async function open(server: RedisServer, ...headings: readonly string[]): Promise<LoggedLocks> {
  const rights = await documentedRights(server, ...headings);
  await server.command('ACL', 'SETUSER', 'locks', 'reset', ...rights);
  const locks = await LoggedLocks.open({ redis: server.url.replace('//', '//locks:secret@') });
  ends.push(() => locks.end());
  return locks;
}

async function started(): Promise<RedisServer> {
  const server = await RedisServer.start();
  ends.push(() => server.stop());
  return server;
}

const WHY = { reason: 'a test', by: 'maria' };

describe('the rights that the documentation lists', () => {
  it('are enough for an instance to say who it is', async () => {
    const server = await started();
    const locks = await open(server);
    await eventually(async () => {
      expect(await server.command('KEYS', 'lock:{instances}*')).toHaveLength(2);
    });
    await (await locks.acquire('key')).release();
    expect(locks.logged).toEqual([]);
  });

  it('are enough for everything that LockAdmin does, with its own', async () => {
    const server = await started();
    const locks = await open(server, 'LockAdmin');
    const admin = new LockAdmin(locks);
    await eventually(async () => {
      expect(await admin.instances()).toHaveLength(1);
    });
    await locks.acquire('a');
    await locks.acquire('b');
    await locks.runOnce('c', () => 'done');
    const listed = [];
    for await (const { key } of admin.list()) listed.push(key);
    expect(listed.sort()).toEqual(['a', 'b', 'c']);
    expect((await admin.describe('a')).holders).toMatchObject([{ isUnresponsive: false }]);
    expect((await admin.hot()).unresponsive).toEqual([]);
    expect(await admin.release(await admin.describe('a'), WHY)).toMatchObject({ status: 'done' });
    const [instance] = await admin.instances();
    expect(await admin.releaseInstance(instance!, WHY)).toEqual({ status: 'done', keys: ['b'] });
    expect(await admin.forgetOnce(await admin.describe('c'), WHY)).toMatchObject({
      status: 'done',
    });
    expect((await admin.audit()).map(({ action }) => action)).toEqual([
      'forget-once',
      'release-instance',
      'release',
    ]);
    expect(locks.logged).toEqual([
      expect.stringMatching(
        /^Lock "a" was lost: an operator released it by force \(maria: a test\)/,
      ),
      expect.stringMatching(
        /^Lock "b" was lost: an operator released it by force \(maria: a test\)/,
      ),
    ]);
  });

  it('are needed: without them LockAdmin says what is refused', async () => {
    const admin = new LockAdmin(await open(await started()));
    await expect(admin.audit()).rejects.toMatchObject({
      nodes: [{ message: expect.stringMatching(/NOPERM.*xrevrange/) }],
    });
    const list = async (): Promise<void> => {
      for await (const _ of admin.list()) throw new Error('nothing is there');
    };
    await expect(list()).rejects.toMatchObject({
      nodes: [{ message: expect.stringMatching(/NOPERM.*scan/) }],
    });
  });
});
