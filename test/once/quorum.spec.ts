import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { BeginRequest, FinishRequest } from '../../lib/store/once-store.js';
import { openStore, request, type OpenStore } from '../store/open-store.js';
import { RedisServer } from '../support/redis-server.js';
import { eventually } from '../support/eventually.js';

let servers: RedisServer[];
let store: OpenStore['store'];

beforeAll(async () => {
  servers = await Promise.all([1, 2, 3].map(() => RedisServer.start()));
}, 60_000);

beforeEach(async () => {
  for (const server of servers) {
    if (server.isRunning) await server.command('FLUSHALL');
    else await server.restart();
  }
  ({ store } = await openStore({ redis: servers.map(({ url }) => url), nodeTimeoutMs: 500 }));
});

afterEach(() => store.close());

afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
}, 60_000);

const lease = request('work', { token: 'holdfast:me' });

/** Of "me", which comes after everybody that these tests plant. */
const FENCE = 10;

const begin = (owner = 'me', attempts = 3): BeginRequest => ({
  key: 'work',
  token: lease.token,
  owner,
  fencingToken: FENCE,
  attempts,
  lifeMs: 60_000,
  keepMs: 60_000,
});

const end = (how: FinishRequest['end'], owner = 'me', attempt = 1): FinishRequest => ({
  key: 'work',
  token: lease.token,
  owner,
  fencingToken: owner === 'me' ? FENCE : 1,
  attempt,
  end: how,
  lifeMs: 60_000,
});

/** What one server knows. */
const know = (index: number, fields: Record<string, string | number>): Promise<unknown> =>
  servers[index]!.command('HSET', '{lock:work}:once', ...Object.entries(fields).flat());

const known = async (field: string): Promise<unknown[]> =>
  Promise.all(servers.map((server) => server.command('HGET', '{lock:work}:once', field)));

/** On all three. */
const hold = async (): Promise<void> => {
  await store.acquire(lease);
  await eventually(async () => {
    const tokens = await Promise.all(servers.map((server) => server.command('GET', 'lock:work')));
    return tokens.every((token) => token === lease.token);
  });
};

describe('an attempt on three masters', () => {
  it('has the number after the highest that a majority knows, and a majority knows it then', async () => {
    await servers[2]!.kill();
    await know(0, { state: 'failed', attempt: 2, owner: 'first', end: 'failed' });
    await know(1, { state: 'running', attempt: 1, owner: 'first', end: '' });
    await store.acquire(lease);
    expect(await store.once.begin(begin('me', 5))).toEqual({ status: 'begun', attempt: 3 });
    for (const server of servers.slice(0, 2))
      expect(await server.command('HGET', '{lock:work}:once', 'attempt')).toBe('3');
  });

  it('does not begin when one of a majority knows that the work is done, and the others are told', async () => {
    await servers[2]!.kill();
    await store.acquire(lease);
    await know(1, { state: 'done', attempt: 2, owner: 'first', end: 'done', text: '7' });
    expect(await store.once.begin(begin())).toEqual({ status: 'done', attempts: 2, value: '7' });
    for (const server of servers.slice(0, 2)) {
      expect(await server.command('HMGET', '{lock:work}:once', 'state', 'text')).toEqual([
        'done',
        '7',
      ]);
    }
  });

  it('does not begin when one of a majority knows that there are none left, and the others are told', async () => {
    await servers[2]!.kill();
    await store.acquire(lease);
    await know(0, { state: 'running', attempt: 3, owner: 'first', end: '' });
    expect(await store.once.begin(begin())).toMatchObject({ status: 'exhausted', attempts: 3 });
    for (const server of servers.slice(0, 2))
      expect(await server.command('HGET', '{lock:work}:once', 'state')).toBe('exhausted');
  });

  it('begins for the holder of the lock on a majority only', async () => {
    await servers[0]!.command('SET', 'lock:work', lease.token);
    expect(await store.once.begin(begin())).toEqual({ status: 'lost', attempts: 0 });
  });

  it('begins and ends while one is dead, and neither while two are', async () => {
    await hold();
    await servers[2]!.kill();
    expect(await store.once.begin(begin())).toEqual({ status: 'begun', attempt: 1 });
    expect(await store.once.finish(end('done'))).toEqual({ status: 'accepted' });
    await servers[1]!.kill();
    expect(await store.once.begin({ ...begin('next'), key: 'other' })).toMatchObject({
      status: 'unavailable',
    });
    expect(await store.once.finish(end('done'))).toMatchObject({ status: 'unavailable' });
  });

  it('is still accepted after a node forgot it that has the lock again', async () => {
    await hold();
    await store.once.begin(begin());
    await servers[0]!.command('DEL', '{lock:work}:once');
    await servers[1]!.command('DEL', '{lock:work}:once');
    expect(await store.once.finish(end('done'))).toEqual({ status: 'accepted' });
    await eventually(async () => (await known('state')).every((state) => state === 'done'));
  });

  it('that is superseded leaves no mark, not even on a node that had not heard of the next one', async () => {
    await know(0, { state: 'running', attempt: 1, owner: 'slow', end: '', fence: 1 });
    await know(1, { state: 'running', attempt: 2, owner: 'next', end: '', fence: 2 });
    await know(2, { state: 'running', attempt: 2, owner: 'next', end: '', fence: 2 });
    expect(await store.once.finish(end('done', 'slow'))).toEqual({ status: 'superseded' });
    expect(await known('state')).toEqual(['failed', 'running', 'running']);
  });
});
