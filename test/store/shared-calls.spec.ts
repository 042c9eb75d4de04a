import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import type { AcquireOutcome, AcquireRequest, ReleaseOutcome } from '../../lib/store/lock-store.js';
import type { LockStore } from '../../lib/store/lock-store.js';
import { acquireScript } from '../../lib/store/redis/scripts/acquire.js';
import { give, take } from '../../lib/store/redis/scripts/plain.js';
import { releaseScript } from '../../lib/store/redis/scripts/release.js';
import { eventually } from '../support/eventually.js';
import { recordCommands } from '../support/command-recorder.js';
import { watchHandles } from '../support/no-leaks.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisServer } from '../support/redis-server.js';
import { LINE, openStore, request } from './open-store.js';

const handles = watchHandles();
let server: RedisServer;
let store: LockStore;

beforeAll(async () => {
  server = await RedisServer.start();
});

beforeEach(async () => {
  await server.command('FLUSHALL');
  ({ store } = await openStore({ redis: server.url }));
});

afterEach(() => store.close());

afterAll(async () => {
  await server.stop();
  await handles.expectNoneOpen();
});

/** How many keys of a request each of them has. */
const SCRIPTS = new Map([
  [acquireScript.sha, { name: 'acquire', keys: 5 }],
  [take.sha, { name: 'take', keys: 4 }],
  [releaseScript.sha, { name: 'release', keys: 5 }],
  [give.sha, { name: 'give', keys: 2 }],
]);

/** Which scripts are run meanwhile, and for how many requests. */
async function scriptsOf(work: () => Promise<unknown>): Promise<string[]> {
  const commands = await recordCommands(server.port, work);
  return commands
    .filter(([name]) => name === 'evalsha')
    .map(([, sha = '', keyCount]) => {
      const { name, keys } = SCRIPTS.get(sha) ?? { name: sha, keys: 1 };
      return `${name} ${String(Number(keyCount) / keys)}`;
    });
}

const acquireAll = (keys: readonly string[]): Promise<readonly AcquireOutcome[]> =>
  Promise.all(keys.map((key) => store.acquire(request(key))));

/** As a lease is released that was granted plainly, and under which no turns were taken. */
const giveBack = (lease: AcquireRequest, from = store): Promise<ReleaseOutcome> =>
  from.release({ ...lease, isPlain: true });

const keysFrom = (first: number, last: number): readonly string[] =>
  Array.from({ length: last - first + 1 }, (_, index) => `key:${first + index}`);

describe('requests of one turn of the event loop', () => {
  it('go out together, 24 in a call, when one is on its way', async () => {
    const leases = keysFrom(1, 40).map((key) => request(key));
    await acquireAll(['warm', 'up']);
    const scripts = await scriptsOf(async () => {
      const outcomes = await Promise.all(leases.map((lease) => store.acquire(lease)));
      expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['granted']));
      const released = await Promise.all(leases.map((lease) => giveBack(lease)));
      expect(released).toEqual(leases.map(() => ({ status: 'released' })));
    });
    expect(scripts).toEqual([
      ...['take 1', 'take 24', 'take 15'],
      ...['give 1', 'give 24', 'give 15'],
    ]);
    expect(await server.command('KEYS', '*key:*')).toHaveLength(40); // their fences
  });

  it('that are not plain are asked again by the whole script, each of them alone', async () => {
    const ahead = Date.now() * 1_000 + 60_000_000;
    for (const key of keysFrom(1, 3)) await server.command('SET', `{lock:${key}}:fence`, ahead);
    const keys = keysFrom(1, 6);
    let outcomes: readonly AcquireOutcome[] = [];
    const scripts = await scriptsOf(async () => {
      outcomes = await acquireAll(keys);
    });
    expect(scripts).toEqual(['take 1', 'take 5', 'acquire 1', 'acquire 1', 'acquire 1']);
    expect(outcomes).toMatchObject([
      ...keysFrom(1, 3).map(() => ({ status: 'granted', fencingToken: ahead + 1 })),
      ...keysFrom(4, 6).map(() => ({ status: 'granted', isPlain: true })),
    ]);
  });

  it('of keys that are held are refused at once, with the same facts as by the whole script', async () => {
    const taken = keysFrom(1, 3).map((key) => request(key));
    await Promise.all(taken.map((lease) => store.acquire(lease)));
    await server.command('SET', 'lock:foreign', 'of another', 'PX', 20_000);
    await server.command('SET', 'lock:endless', 'foreign');
    const keys = [...keysFrom(1, 6), 'foreign', 'endless'];
    let outcomes: readonly AcquireOutcome[] = [];
    const scripts = await scriptsOf(async () => {
      outcomes = await acquireAll(keys);
    });
    expect(scripts).toEqual(['take 1', 'take 7']);
    expect(outcomes).toMatchObject([
      ...taken.map(({ token }) => ({ status: 'held', holder: token })),
      ...keysFrom(4, 6).map(() => ({ status: 'granted', isPlain: true })),
      { status: 'held', key: 'foreign', holder: 'of', checkAgainMs: 1_000 },
      { status: 'held', key: 'endless', remainingMs: Infinity, checkAgainMs: 1_000 },
    ]);
    const [first] = outcomes;
    if (first?.status !== 'held') throw new Error('It was granted.');
    expect(first.remainingMs).toBeGreaterThan(0);
    expect(first.checkAgainMs).toBe(first.remainingMs);
  });

  it('that release keys with a line are asked again by the whole script, each of them alone', async () => {
    await store.listen(() => undefined);
    const leases = keysFrom(1, 4).map((key) => request(key));
    await Promise.all(leases.map((lease) => store.acquire(lease)));
    const [first = '', ...others] = keysFrom(1, 3);
    const waiting = [first, others[0] ?? ''].map((key) => request(key, { line: LINE }));
    for (const each of waiting) await store.acquire(each);
    const scripts = await scriptsOf(async () => {
      const released = await Promise.all(leases.map((lease) => giveBack(lease)));
      expect(released).toEqual(leases.map(() => ({ status: 'released' })));
    });
    expect(scripts).toEqual(['give 1', 'give 3', 'release 1', 'release 1']);
    for (const each of waiting)
      expect(await store.acquire(each)).toMatchObject({ status: 'granted' });
  });

  it('have nothing to wait for when they come alone', async () => {
    await acquireAll(['warm up']);
    const scripts = await scriptsOf(async () => {
      for (const key of keysFrom(1, 3)) await store.acquire(request(key));
    });
    expect(scripts).toEqual(['take 1', 'take 1', 'take 1']);
  });

  it('are answered each for itself: granted, refused, in line, or with an error', async () => {
    await server.command('LPUSH', 'lock:list', 'no lock');
    const held = request('held');
    await store.acquire(held);
    await store.listen(() => undefined);
    const asked = [
      request('first'),
      request('list'),
      request('held'),
      request('held', { line: LINE }),
      request('free'),
    ];
    const outcomes = await Promise.all(asked.map((each) => store.acquire(each)));
    expect(outcomes).toMatchObject([
      { status: 'granted' },
      {
        status: 'unavailable',
        nodes: [
          {
            kind: 'error',
            message: expect.stringMatching(/"lock:list", .* holds what Holdfast did not write/),
          },
        ],
      },
      { status: 'held', key: 'held', holder: held.token },
      { status: 'held', key: 'held', holder: held.token, ticket: expect.any(Number) },
      { status: 'granted' },
    ]);
    expect(outcomes[2]).not.toHaveProperty('ticket', expect.anything());
  });

  it('are run as a whole by a server that does not know the scripts', async () => {
    await server.command('SCRIPT', 'FLUSH');
    const outcomes = await acquireAll(keysFrom(1, 5));
    expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['granted']));
  });

  it('are apart where they have less time, or several keys', async () => {
    await acquireAll(['warm up']);
    const scripts = await scriptsOf(() =>
      Promise.all([
        ...keysFrom(1, 3).map((key) => store.acquire(request(key))),
        store.acquire(request('short', { ttlMs: 500 })),
        store.acquire(request(['two', 'keys'])),
      ]),
    );
    expect(scripts.sort()).toEqual(['acquire 2', 'take 1', 'take 1', 'take 2']);
  });

  it('keep their order: what is given back and asked for again at once is there', async () => {
    const held = keysFrom(1, 3).map((key) => request(key));
    await Promise.all(held.map((lease) => store.acquire(lease)));
    await giveBack(request('other')); // the server knows both scripts from here on
    const before = store.acquire(request('before'));
    const outcomes = await Promise.all(
      held.flatMap((lease) => [
        store.acquire(request(`beside ${lease.keys[0] ?? ''}`)),
        giveBack(lease),
        store.acquire(request(lease.keys)),
      ]),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(
      held.flatMap(() => ['granted', 'released', 'granted']),
    );
    expect(await before).toMatchObject({ status: 'granted' });
  });

  it('of one token keep their order: what is given up at once is not left behind', async () => {
    const leases = keysFrom(1, 6).map((key) => request(key));
    const asking = leases.map((lease) => store.acquire(lease));
    await Promise.all(leases.map((lease) => store.release(lease)));
    await Promise.all(asking);
    expect(await server.command('EXISTS', ...keysFrom(1, 6).map((key) => `lock:${key}`))).toBe(0);
  });

  it('go out before the connection is closed', async () => {
    const leases = keysFrom(1, 3).map((key) => request(key));
    await Promise.all(leases.map((lease) => store.acquire(lease)));
    for (const lease of leases) void giveBack(lease);
    await store.close();
    const names = leases.map(({ keys }) => `lock:${keys[0] ?? ''}`);
    await eventually(async () => (await server.command('EXISTS', ...names)) === 0);
  });

  it('of one key are asked for in their order: the first has it, and the others are refused', async () => {
    await acquireAll(['warm up']);
    const asked = ['other', 'key', 'key', 'key'].map((key) => request(key));
    const outcomes = await Promise.all(asked.map((each) => store.acquire(each)));
    expect(outcomes).toMatchObject([
      { status: 'granted' },
      { status: 'granted' },
      { status: 'held', holder: asked[1]?.token },
      { status: 'held', holder: asked[1]?.token },
    ]);
  });

  it('have fencing tokens that go on from those before, whatever is stored of each', async () => {
    const ahead = Date.now() * 1_000 + 60_000_000;
    await server.command('SET', '{lock:ahead}:fence', ahead);
    await server.command('SET', '{lock:damaged}:fence', 'not a token');
    await server.command('LPUSH', '{lock:list}:fence', 'no token');
    const outcomes = await acquireAll(['warm up', 'ahead', 'damaged', 'list', 'new']);
    const problem = (key: string): unknown => ({
      status: 'unavailable',
      nodes: [{ message: expect.stringContaining(`{lock:${key}}:fence`) }],
    });
    expect(outcomes).toMatchObject([
      { status: 'granted' },
      { status: 'granted', fencingToken: ahead + 1 },
      problem('damaged'),
      problem('list'),
      { status: 'granted' },
    ]);
    expect(await server.command('EXISTS', 'lock:damaged', 'lock:list')).toBe(0);
  });

  it('leave the fences of plain releases as they are: the last token that was used is there', async () => {
    const leases = keysFrom(1, 4).map((key) => request(key));
    const outcomes = await Promise.all(leases.map((lease) => store.acquire(lease)));
    const fences = (): Promise<unknown> =>
      server.command('MGET', ...keysFrom(1, 4).map((key) => `{lock:${key}}:fence`));
    const granted = outcomes.map((each) => String(each.status === 'granted' && each.fencingToken));
    expect(await fences()).toEqual(granted);
    const scripts = await scriptsOf(() => Promise.all(leases.map((lease) => giveBack(lease))));
    expect(scripts).toEqual(['give 1', 'give 3']);
    expect(await fences()).toEqual(granted);
    const again = await acquireAll(keysFrom(1, 4));
    again.forEach((each, index) => {
      expect(each.status === 'granted' && each.fencingToken).toBeGreaterThan(
        Number(granted[index]),
      );
    });
  });

  it('are all refused by a server whose memory is full, which still takes locks back', async () => {
    const held = keysFrom(1, 4).map((key) => request(key));
    await Promise.all(held.map((lease) => store.acquire(lease)));
    await server.command('CONFIG', 'SET', 'maxmemory', '1');
    const outcomes = await acquireAll(keysFrom(5, 8));
    const released = await Promise.all(held.map((lease) => giveBack(lease)));
    await server.command('CONFIG', 'SET', 'maxmemory', '0');
    expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['unavailable']));
    expect(released).toEqual(held.map(() => ({ status: 'released' })));
    expect(await server.command('EXISTS', ...keysFrom(1, 8).map((key) => `lock:${key}`))).toBe(0);
  });

  it('need no MGET: a user may be forbidden it', async () => {
    await server.command('ACL', 'SETUSER', 'old', 'on', '>secret', '~*', '&*', '+@all', '-mget');
    const { store: own } = await openStore({
      redis: `redis://old:secret@127.0.0.1:${server.port}`,
    });
    const leases = keysFrom(1, 5).map((key) => request(key));
    const outcomes = await Promise.all(leases.map((lease) => own.acquire(lease)));
    const released = await Promise.all(leases.map((lease) => giveBack(lease, own)));
    await own.close();
    expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['granted']));
    expect(released).toEqual(leases.map(() => ({ status: 'released' })));
  });
});

describe('on a Cluster', () => {
  let cluster: RedisCluster;
  let client: Cluster;

  beforeAll(async () => {
    cluster = await RedisCluster.start();
    client = new Cluster(cluster.startupNodes);
  }, 60_000);

  afterAll(async () => {
    client.disconnect();
    await cluster.stop();
  });

  /** How many scripts its masters run for 20 locks that are asked for at the same moment. */
  async function scriptsFor(keyPrefix: string): Promise<number> {
    const opened = await openStore({ redis: client, keyPrefix });
    try {
      const leases = keysFrom(1, 20).map((key) => request(key));
      const counts = async (): Promise<number> => {
        const infos = await Promise.all(
          cluster.nodes.map((node) => node.command('INFO', 'commandstats')),
        );
        const calls = infos.map((info) => /cmdstat_evalsha:calls=(\d+)/.exec(String(info))?.[1]);
        return calls.reduce((sum, count) => sum + Number(count ?? 0), 0);
      };
      const before = await counts();
      const outcomes = await Promise.all(leases.map((lease) => opened.store.acquire(lease)));
      expect(outcomes.map(({ status }) => status)).toEqual(leases.map(() => 'granted'));
      const after = await counts();
      const released = await Promise.all(leases.map((lease) => giveBack(lease, opened.store)));
      expect(released).toEqual(leases.map(() => ({ status: 'released' })));
      return after - before;
    } finally {
      await opened.store.close();
    }
  }

  it('go out together where the prefix puts all keys into one slot', async () => {
    await scriptsFor('{one}:'); // its master knows the scripts from here on
    expect(await scriptsFor('{one}:')).toBeLessThan(5);
  });

  it('go out one by one where each key has a slot of its own', async () => {
    expect(await scriptsFor('many:')).toBeGreaterThanOrEqual(20);
  });
});
