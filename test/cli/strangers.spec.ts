import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { LockAdmin } from 'nestjs-holdfast/admin';
import { Locks } from '../support/locks.js';
import { RedisServer } from '../support/redis-server.js';
import { run } from './program.js';

let server: RedisServer;
let locks: Locks;

const RECORD = {
  ...{ application: 'orders', host: 'web-3', pid: 7, startedAtMs: Date.now(), lifeMs: 60_000 },
  ...{ version: '1', service: 'jobs', address: '["plain a"]' },
  holds: [{ leaseId: 'a', method: 'pay' }],
};

/** Each has one value that no instance writes. */
const WRONG: readonly unknown[] = [
  ...[null, 7, [], {}, { ...RECORD, id: 'another' }],
  ...Object.keys(RECORD)
    .filter((name) => name !== 'holds')
    .flatMap((name) => [{}, 1e300, ['\x1b[2J']].map((value) => ({ ...RECORD, [name]: value }))),
  ...['application', 'host', 'pid', 'startedAtMs', 'lifeMs'].map((name) => ({
    ...{ ...RECORD, lifeMs: 120_000 },
    [name]: undefined,
  })),
  ...['null', '{}', '[{}]', 'x'].map((address) => ({ ...RECORD, address })),
];

beforeAll(async () => {
  server = await RedisServer.start();
  locks = new Locks({ redis: server.url });
  await locks.open();
  const add = async (id: string, record: unknown): Promise<void> => {
    await server.command('ZADD', 'lock:{instances}', Date.now(), id);
    const isOwn = typeof record === 'object' && record !== null && !Array.isArray(record);
    const text = JSON.stringify(isOwn ? { id, ...record } : record);
    await server.command('SET', `lock:{instances}:${id}`, text, 'PX', 60_000);
  };
  for (const [index, record] of WRONG.entries()) await add(`wrong${index}`, record);
  await add('right', RECORD);
  await add('held', { ...RECORD, holds: [{ leaseId: 7 }] });
  await server.command('SET', 'lock:mode', 'holdfast:a.b:\x1b[2J', 'PX', 60_000);
  await server.command('SET', '{lock:mode}:fence', '1e999');
  await server.command('SET', '{lock:mode}:holders:limit', '-1e999');
  await server.command('ZADD', '{lock:mode}:queue', '1e300', 'holdfast:a.c 1 plain');
  for (const [key, state, attempt] of [
    ['state', 'done\x1b[2J', '1'],
    ['attempt', 'done', '1e999'],
  ] as const) {
    await server.command('HSET', `{lock:${key}}:once`, 'state', state, 'attempt', attempt);
    await server.command('HSET', `{lock:${key}}:once`, 'text', '\x1b[2J');
  }
  await server.command('HSET', '{lock:fine}:once', 'state', 'failed', 'attempt', '2');
  const entry = { id: 'a', action: 'release', keys: ['a'], by: 'b', reason: '\x1b', at: 1e300 };
  await server.command('XADD', 'lock:{audit}', '*', 'entry', JSON.stringify(entry));
});

afterAll(async () => {
  await locks.shutdown(0);
  await server.stop();
});

describe('what other clients have written where operators look', () => {
  it('is left out where it is of another kind', async () => {
    const admin = new LockAdmin(locks);
    const ids = (await admin.instances()).map(({ id }) => id);
    expect(ids.sort()).toEqual(['held', 'right']);
    const { holders, line, ...rest } = await admin.describe('mode');
    expect(rest).toEqual({
      key: 'mode',
      state: 'held',
      mode: 'exclusive',
      unresponsive: [],
      history: [],
      audit: [],
    });
    expect(holders).toMatchObject([{ isForeign: false }]);
    for (const each of [...holders, ...line]) expect(each).not.toHaveProperty('since');
    for (const key of ['state', 'attempt'])
      expect(await admin.describe(key)).not.toHaveProperty('once');
    expect(await admin.describe('fine')).toMatchObject({ once: { state: 'failed', attempts: 2 } });
    expect(await admin.audit()).toEqual([]);
  });

  it.each(['list', 'show mode', 'show state', 'instances', 'audit', 'doctor', 'list --json'])(
    'ends no command, and sends no escape sequence to the terminal: %s',
    async (command) => {
      const { code, stdout, stderr } = await run([...command.split(' '), '--redis', server.url]);
      expect([0, 1]).toContain(code);
      expect(stdout + stderr).not.toMatch(/[^\P{Cc}\n]/u);
      expect(stdout + stderr).not.toMatch(/NaN|Invalid|undefined|Infinity/);
    },
  );
});
