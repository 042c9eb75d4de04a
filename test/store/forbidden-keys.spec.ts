import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { LockService } from 'nestjs-holdfast';
import { eventually } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';
import { openStore, request, type OpenStore } from './open-store.js';

let servers: readonly RedisServer[];
let server: RedisServer;
let opened: OpenStore | undefined;

const onEach = (...command: readonly string[]): Promise<unknown> =>
  Promise.all(servers.map((each) => each.command(...command)));

const urls = (): readonly string[] =>
  servers.map(({ port }) => `redis://some:secret@127.0.0.1:${String(port)}`);

beforeAll(async () => {
  servers = await Promise.all(Array.from({ length: 3 }, () => RedisServer.start()));
  [server] = servers as [RedisServer];
});

beforeEach(async () => {
  await onEach('FLUSHALL');
  await onEach('ACL', 'SETUSER', 'some', 'on', '>secret', '~*', '&*', '+@all');
});

afterEach(async () => {
  await opened?.store.close();
  opened = undefined;
});

afterAll(() => Promise.all(servers.map((each) => each.stop())));

/** Takes the right to the keys of every other application away. */
const forbid = (): Promise<unknown> =>
  onEach('ACL', 'SETUSER', 'some', 'resetkeys', '~lock:key:*', '~{lock:key:*', '~*<trial:*');

const KEYS = Array.from({ length: 100 }, (_, i) =>
  i % 50 === 30 ? `other:${String(i)}` : `key:${String(i)}`,
);
const leases = (): ReturnType<typeof request>[] => KEYS.map((key) => request(key));

/** What became of the keys that the user may use, and of the others. */
const statuses = (outcomes: readonly { readonly status: string }[]): unknown => {
  const of = (begin: string): unknown => [
    ...new Set(outcomes.filter((_, i) => KEYS[i]?.startsWith(begin)).map(({ status }) => status)),
  ];
  return { allowed: of('key:'), forbidden: of('other:') };
};

describe.each([
  ['one server', () => ({ redis: urls()[0] ?? '' })],
  [
    'one server, with acknowledged writes',
    () => ({
      redis: urls()[0] ?? '',
      replicas: { ack: 0, timeoutMs: 100 },
    }),
  ],
  ['three masters', () => ({ redis: urls() })],
])(
  'HF-33: of requests that go out together, one for a key that the Redis user may not use fails alone: %s',
  (_, options) => {
    it('acquire', async () => {
      opened = await openStore(options());
      const { store } = opened;
      await forbid();
      const outcomes = await Promise.all(leases().map((lease) => store.acquire(lease)));
      expect(statuses(outcomes)).toEqual({ allowed: ['granted'], forbidden: ['unavailable'] });
      expect(outcomes[30]).toMatchObject({
        transient: false,
        nodes: expect.arrayContaining([
          expect.objectContaining({ message: expect.stringContaining('NOPERM') }),
        ]),
      });
    });

    it('renew and release', async () => {
      opened = await openStore(options());
      const { store } = opened;
      const held = leases();
      await Promise.all(held.map((lease) => store.acquire(lease)));
      await forbid();
      expect(statuses(await store.extend(held))).toEqual({
        allowed: ['extended'],
        forbidden: ['unavailable'],
      });
      const released = await Promise.all(held.map((lease) => store.release(lease, 1)));
      expect(statuses(released)).toEqual({ allowed: ['released'], forbidden: ['unavailable'] });
    });
  },
);

describe('of requests that go out together', () => {
  it('one that is withdrawn before the reply leaves no key behind', async () => {
    opened = await openStore({ redis: urls()[0] ?? '' });
    const { store } = opened;
    await forbid();
    const wanted = leases();
    const asking = Promise.all(wanted.map((lease) => store.acquire(lease)));
    const released = wanted.filter((_, i) => KEYS[i]?.startsWith('key:'));
    await Promise.all(released.map((lease) => store.release(lease)));
    await asking;
    expect(await server.command('KEYS', 'lock:key:*')).toEqual([]);
  });

  it('none is sent again to a server that is busy with another script', async () => {
    opened = await openStore({ redis: urls()[0] ?? '' });
    const { store } = opened;
    await server.command('CONFIG', 'RESETSTAT');
    await server.command('CONFIG', 'SET', 'lua-time-limit', '1');
    const endless = server.command('EVAL', 'while true do end', 0).catch(() => undefined);
    await eventually(() =>
      server.command('PING').then(
        () => false,
        (error: unknown) => String(error).includes('BUSY'),
      ),
    );
    const outcomes = await Promise.all(leases().map((lease) => store.acquire(lease)));
    await server.command('SCRIPT', 'KILL');
    await endless;
    expect(outcomes).toEqual(
      KEYS.map(() => expect.objectContaining({ status: 'unavailable', transient: true })),
    );
    const stats = String(await server.command('INFO', 'commandstats'));
    expect(/cmdstat_evalsha:.*rejected_calls=(\d+)/.exec(stats)?.[1]).toBe('6');
  });

  it.each(['lock:key:1', '{lock:key:1}:fence', '{lock:key:1}:queue', '{lock:key:1}:holders'])(
    'a foreign value at %s fails no other one',
    async (name) => {
      opened = await openStore({ redis: urls()[0] ?? '' });
      const { store } = opened;
      const others = (outcomes: readonly { readonly status: string }[]): unknown => [
        ...new Set(outcomes.filter((_, i) => i !== 1).map(({ status }) => status)),
      ];
      const wanted = leases();
      await server.command('HSET', name, 'no', 'lock');
      expect(others(await Promise.all(wanted.map((lease) => store.acquire(lease))))).toEqual([
        'granted',
      ]);
      await server.command('DEL', name);
      await store.acquire(wanted[1] as (typeof wanted)[number]);
      await server.command('DEL', name);
      await server.command('HSET', name, 'no', 'lock');
      expect(others(await store.extend(wanted))).toEqual(['extended']);
      expect(others(await Promise.all(wanted.map((lease) => store.release(lease, 1))))).toEqual([
        'released',
      ]);
    },
  );
});

describe('HF-33: a key that the Redis user may not use', () => {
  it('fails only its own callers, however many there are at once', async () => {
    const locks = new LockService({ redis: urls()[0] ?? '' });
    await forbid();
    const outcomes = await Promise.allSettled(KEYS.map((key) => locks.run(key, () => key)));
    await locks.shutdown();
    const failed = outcomes.flatMap(({ status }, i) => (status === 'rejected' ? [KEYS[i]] : []));
    expect(failed).toEqual(['other:30', 'other:80']);
  });
});
