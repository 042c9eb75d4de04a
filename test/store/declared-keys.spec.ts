import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { readdirSync } from 'node:fs';
import { LockAdmin } from '../../lib/admin/lock-admin.js';
import type { LockModuleOptions } from '../../lib/options/lock-module-options.js';
import { keyNames } from '../../lib/store/redis/scripts/key-names.js';
import { raiseFenceScript } from '../../lib/store/redis/scripts/raise-fence.js';
import { luaText, script } from '../../lib/store/redis/scripts/script.js';
import { recordScripts, type SentCommand } from '../support/command-recorder.js';
import { encoded } from '../support/encoded.js';
import { deferred, eventually } from '../support/eventually.js';
import { Locks } from '../support/locks.js';
import { RedisServer } from '../support/redis-server.js';

type Recorded = Awaited<ReturnType<typeof recordScripts>>;

const NAMES = readdirSync(new URL('../../lib/store/redis/lua/', import.meta.url))
  .filter((file) => file.endsWith('.lua'))
  .map((file) => file.slice(0, -'.lua'.length));

let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start();
});

afterAll(() => server.stop());

/** Two processes, which each ends at the end. */
async function withTwo(
  options: LockModuleOptions,
  work: (one: Locks, two: Locks) => Promise<unknown>,
): Promise<void> {
  const [one, two] = [new Locks(options), new Locks(options)];
  try {
    await Promise.all([one.open(), two.open()]);
    await work(one, two);
  } finally {
    await Promise.all([one.shutdown(0), two.shutdown(0)]);
  }
}

/** One caller waits in line while the other one holds the key, which is then released. */
async function waits(
  one: Locks,
  two: Locks,
  held: object,
  wanted: object,
  keys = ['a'],
): Promise<void> {
  const admin = new LockAdmin(one);
  const lock = await one.acquire(keys, { ttl: '1m', ...held });
  const waiting = two.acquire(keys, { ttl: '1m', wait: '20s', ...wanted });
  await eventually(async () => (await admin.describe(keys[0] ?? '')).line.length === 1);
  await lock.extend();
  await lock.release();
  const next = await waiting;
  await next.extend();
  await next.release();
}

/** What two processes do with locks of all kinds. */
async function lockAll(one: Locks, two: Locks): Promise<void> {
  for (const key of ['a', 'b']) await one.limiter(key, { limit: 2 }).setLimit(3);
  await waits(one, two, {}, {});
  await waits(one, two, {}, { limit: 2 });
  await waits(one, two, {}, { mode: 'shared' });
  await waits(one, two, { mode: 'shared' }, {});
  await waits(one, two, { limit: 2 }, {}, ['a', 'b', 'c']);
  await waits(one, two, {}, { limit: 2 }, ['a', 'b', 'c']);
  await one.run('a', { limit: 2, minHold: '50ms' }, async (lock) => {
    await lock.guarded([['incr', 'lock:count']]);
    await (await two.limiter('a', { limit: 2 }).acquire()).release();
  });
  for (const mode of [{}, { mode: 'shared' }, { limit: 2 }] as const) {
    const lock = await one.acquire('detached', { ttl: '1m', ...mode });
    await (await two.attach(await lock.detach())).release();
  }
  await one.limiter('a', { limit: 2 }).setLimit(null);
  await raises(one);
}

/** Work that is to be done once, a leader, and what operators do. */
async function doOther(one: Locks, two: Locks): Promise<void> {
  await one.runOnce('work', () => 'done');
  await two.runOnce('work', () => 'done');
  const failing = () => Promise.reject(new Error('fails'));
  await one.runOnce('failing', { attempts: 1 }, failing).catch(String);
  const elected = deferred();
  const leadership = one.lead('mailbox', { ttl: '10s', onElected: () => elected.resolve() });
  await elected.promise;
  await leadership.stop();
  await one.acquire('forced', { ttl: '1m' });
  await two.forceRelease('forced', { reason: 'incident 7' });
  const admin = new LockAdmin(one);
  for await (const { key } of admin.list()) await admin.describe(key);
  await admin.forgetOnce(await admin.describe('work'), { reason: 'incident 7' });
  await one.health();
}

/** What a caller of keys in several slots of a Cluster asks for at the end. */
async function raises(locks: Locks): Promise<void> {
  const lock = await locks.acquire('raised', { ttl: '1m', limit: 2 });
  const names = keyNames('lock:')('raised');
  const [token = ''] = (await server.command('ZRANGE', names.holders, 0, -1)) as string[];
  const [fencingToken, ttlMs] = [lock.fencingToken + 1, 60_000];
  const request = { names: [names], token, fencingToken, ttlMs, lineMode: 'cluster' } as const;
  const call = encoded(raiseFenceScript, request);
  expect(await server.command('EVAL', raiseFenceScript.lua, ...call)).toBe(1);
  await lock.release();
}

/** The keys that a script was given. */
const declaredIn = ([, , count = '0', ...rest]: SentCommand): readonly string[] =>
  rest.slice(0, Number(count));

/** The keys in commands, as the server itself finds them. */
async function keysIn(command: SentCommand): Promise<readonly string[]> {
  try {
    return (await server.command('COMMAND', 'GETKEYS', ...command)) as string[];
  } catch (error) {
    expect(String(error)).toMatch(/has no key arguments|wrong number of arguments/);
    return [];
  }
}

/** What scripts did with keys that their callers did not declare. */
async function undeclaredIn(recorded: Recorded): Promise<readonly string[]> {
  const known = new Map<string, readonly string[]>();
  const undeclared = new Set<string>();
  for (const { sent, called } of recorded)
    for (const command of called) {
      const text = command.join(' ');
      const keys = known.get(text) ?? (await keysIn(command));
      known.set(text, keys);
      if (keys.some((key) => !declaredIn(sent).includes(key))) undeclared.add(text);
    }
  return [...undeclared];
}

/** The names of the scripts that were not run. */
function missingIn(recorded: Recorded): readonly string[] {
  const texts = new Set(recorded.map(({ sent: [, text] }) => text));
  return NAMES.filter((name) => {
    const { lua, sha } = script(luaText(name));
    return !texts.has(lua) && !texts.has(sha);
  });
}

it('every script uses no keys but those that its call declares', async () => {
  const recorded = await recordScripts(server.port, async () => {
    await withTwo({ redis: server.url }, async (one, two) => {
      await lockAll(one, two);
      await doOther(one, two);
    });
    const restartGuard = { maxTtl: '1m', bootstrap: true } as const;
    await withTwo({ redis: server.url, restartGuard }, lockAll);
  });
  expect(await undeclaredIn(recorded)).toEqual([]);
  expect(missingIn(recorded)).toEqual([]);
});
