import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  jest,
} from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Cluster, Redis } from 'ioredis';
import { LockService, type Lock } from 'nestjs-holdfast';
import { IoredisCluster } from '../../lib/store/redis/client/ioredis/ioredis-client.js';
import { IoredisSubscriber } from '../../lib/store/redis/client/ioredis/ioredis-subscriber.js';
import { ChildScript } from '../support/child-script.js';
import { eventually } from '../support/eventually.js';
import { watchHandles } from '../support/no-leaks.js';
import { RedisCluster } from '../support/redis-cluster.js';
import type { RedisServer } from '../support/redis-server.js';
import { documentedRights } from './documented-rights.js';

/** So long that a waiter who sleeps until a lease ends fails its test. */
const TTL_MS = 60_000;
const SOON_MS = 5_000;
/** Until another master is elected, too. */
const ELECTED_MS = 25_000;

const WAIT_SCRIPT = new URL('./waits-on-cluster.ts', import.meta.url);

const handles = watchHandles();
const closings: (() => unknown)[] = [];
let cluster: RedisCluster;
let logged: string[] = [];
let count = 0;

beforeAll(async () => {
  cluster = await RedisCluster.start({ masters: 3, replicas: 3 });
}, 90_000);

beforeEach(() => {
  logged = [];
  const log = (message: unknown): void => void logged.push(String(message));
  Logger.overrideLogger({ log, error: log, warn: log });
});

afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close();
});

afterAll(async () => {
  await cluster.stop();
  await handles.expectNoneOpen();
});

interface ServiceOptions {
  readonly username?: string;
  readonly keyPrefix?: string;
  /** How often it is asked where slots are, in ms. Default: only where there is a reason to. */
  readonly slotsRefreshInterval?: number;
}

/** Services are processes: each has an inbox of its own. */
function service({
  username,
  slotsRefreshInterval = 0,
  ...options
}: ServiceOptions = {}): LockService {
  const redisOptions = username === undefined ? {} : { username, password: 'secret' };
  const client = new Cluster(cluster.startupNodes, {
    lazyConnect: true,
    redisOptions,
    slotsRefreshInterval,
  });
  const locks = new LockService({ redis: client, ttl: TTL_MS, ...options });
  closings.push(async () => {
    await locks.shutdown(0);
    client.disconnect();
  });
  return locks;
}

/** A key that no other test has, of this master if one is named. */
async function newKey(master?: RedisServer): Promise<string> {
  for (;;) {
    count += 1;
    const key = `key ${String(count)}`;
    if (master === undefined || (await masterOf(key)) === master) return key;
  }
}

const masters = async (): Promise<readonly RedisServer[]> => {
  const roles = await Promise.all(cluster.nodes.map((node) => node.command('ROLE')));
  return cluster.nodes.filter((_, index) => (roles[index] as unknown[])[0] === 'master');
};

const masterOf = (key: string): Promise<RedisServer> => cluster.masterOf(`lock:${key}`);

const at = async (key: string, ...command: (string | number)[]): Promise<unknown> =>
  (await masterOf(key)).command(...command);

const holderOf = (key: string): Promise<unknown> => at(key, 'GET', `lock:${key}`);

/** Token and channel of those in line. */
async function lineAt(key: string): Promise<{ token: string; channel: string }[]> {
  const members = (await at(key, 'ZRANGE', `{lock:${key}}:queue`, 0, -1)) as string[];
  return members.map((member) => {
    const [, token = '', channel = ''] = /^(\S+) \d+ (.*)$/.exec(member) ?? [];
    return { token, channel };
  });
}

const stand = (key: string, length: number): Promise<unknown> =>
  eventually(async () => (await lineAt(key)).length === length, { withinMs: 20_000 });

const listenersOf = async (key: string, channel: string): Promise<unknown> =>
  ((await at(key, 'PUBSUB', 'SHARDNUMSUB', channel)) as unknown[])[1];

const isHeard = async (key: string): Promise<boolean> => {
  const [first] = await lineAt(key);
  return first !== undefined && (await listenersOf(key, first.channel)) === 1;
};

/** Somebody holds the key, and somebody else waits for it. */
async function heldAndAwaited(
  key: string,
  waiter = service(),
): Promise<{ readonly lock: Lock; readonly waiting: Promise<Lock> }> {
  const lock = await service().acquire(key);
  const waiting = waiter.acquire(key, { wait: TTL_MS });
  waiting.catch(() => undefined);
  await stand(key, 1);
  return { lock, waiting };
}

async function expectSoon(waiting: Promise<Lock>, withinMs = SOON_MS): Promise<void> {
  const since = performance.now();
  await (await waiting).release();
  expect(performance.now() - since).toBeLessThan(withinMs);
}

describe('a line on a Cluster', () => {
  it('is first in, first out over processes, in every slot, and nobody else is called', async () => {
    const keys = await Promise.all((await masters()).map((master) => newKey(master)));
    const holder = service();
    const locks = await Promise.all(keys.map((key) => holder.acquire(key)));
    const order = new Map<string, number[]>(keys.map((key) => [key, []]));
    const waits: Promise<unknown>[] = [];
    for (let place = 0; place < 4; place += 1) {
      const waiter = service();
      for (const key of keys) {
        const takeTurn = async (): Promise<void> => {
          const lock = await waiter.acquire(key, { wait: TTL_MS });
          order.get(key)?.push(place);
          await lock.release();
        };
        waits.push(takeTurn());
        await stand(key, place + 1);
      }
    }
    const [master] = await masters();
    const calls = await master?.commandsDuring(async () => {
      await Promise.all(locks.map((lock) => lock.release()));
      await Promise.all(waits);
    });
    for (const key of keys) expect(order.get(key)).toEqual([0, 1, 2, 3]);
    // The one whose turn it is, and those behind it: 4 + 3 + 2 + 1, up to as many as are warned.
    expect(calls?.get('spublish')).toBe(10);
    expect(calls?.has('publish')).toBe(false);
  });

  it('TR-23 passes over a process that was killed', async () => {
    const key = await newKey();
    const lock = await service().acquire(key);
    const child = new ChildScript(WAIT_SCRIPT, [JSON.stringify(cluster.startupNodes), key]);
    closings.push(() => child.kill());
    await stand(key, 1);
    const waiting = service().acquire(key, { wait: TTL_MS });
    await stand(key, 2);
    const [dead, next] = await lineAt(key);
    expect(await listenersOf(key, String(dead?.channel))).toBe(1);
    await child.kill();
    await eventually(async () => (await listenersOf(key, String(dead?.channel))) === 0);
    const master = await masterOf(key);
    const sent = await master.commandsDuring(async () => {
      await lock.release();
      expect(await holderOf(key)).toBe(next?.token);
      await expectSoon(waiting);
    });
    // Nobody was called but the one that is there.
    expect(sent.get('spublish')).toBe(1);
  });

  it('gives a process that is frozen its claim, and then goes on', async () => {
    const key = await newKey();
    const { lock, waiting } = await heldAndAwaited(key);
    const ear = new Redis({ port: (await masterOf(key)).port });
    closings.push(() => {
      ear.disconnect();
    });
    const heard: string[] = [];
    ear.on('smessage', (_channel: string, message: string) => heard.push(message));
    const channel = `frozen:{lock:${key}}`;
    await ear.ssubscribe(channel);
    await at(key, 'ZADD', `{lock:${key}}:queue`, 1, `frozen 700 ${channel}`);
    await lock.release();
    expect(await holderOf(key)).toBe('frozen');
    await expectSoon(waiting);
    expect(heard).toEqual([`frozen 0 lock:${key}`]);
  });

  it('is for several keys of different slots', async () => {
    const keys = (await Promise.all((await masters()).map((master) => newKey(master)))).sort();
    const holder = service();
    const locks = await Promise.all(keys.map((key) => holder.acquire(key)));
    const waiting = service().acquire(keys, { wait: TTL_MS });
    for (const [index, lock] of locks.entries()) {
      await stand(String(keys[index]), 1);
      await lock.release();
    }
    await expectSoon(waiting);
  });

  it('has one channel for all keys of a slot, and two who come there at once are both called', async () => {
    const [holder, waiter] = [service({ keyPrefix: '{tag}:' }), service({ keyPrefix: '{tag}:' })];
    const keys = ['a', 'b', 'c'];
    const locks = await Promise.all(keys.map((key) => holder.acquire(key)));
    const waits = keys.map((key) => waiter.acquire(key, { wait: TTL_MS }));
    const master = await cluster.masterOf('{tag}');
    const lines = await eventually(async () => {
      const all = await Promise.all(
        keys.map((key) => master.command('ZRANGE', `{tag}:${key}:{queue}`, 0, -1)),
      );
      return all.flat().length === keys.length && (all.flat() as string[]);
    });
    expect(new Set(lines.map((member) => member.split(' ')[2])).size).toBe(1);
    for (const lock of locks) await lock.release();
    await Promise.all(waits.map((waiting) => expectSoon(waiting)));
  });

  it('has one connection for each master, however many slots somebody waits in', async () => {
    const keys = await Promise.all(Array.from({ length: 30 }, () => newKey()));
    const holder = service();
    const locks = await Promise.all(keys.map((key) => holder.acquire(key)));
    const waiter = service();
    const waits = keys.map((key) => waiter.acquire(key, { wait: TTL_MS }));
    await Promise.all(keys.map((key) => stand(key, 1)));
    const clients = await Promise.all(
      cluster.nodes.map(async (node) =>
        String(await node.command('CLIENT', 'LIST', 'TYPE', 'pubsub')),
      ),
    );
    const mine = clients.map((list) => list.split('\n').filter((line) => line.includes('ssub=')));
    expect(Math.max(...mine.map(({ length }) => length))).toBe(1);
    await Promise.all(locks.map((lock) => lock.release()));
    await Promise.all(waits.map(async (waiting) => (await waiting).release()));
  });

  it('sees to it that those who wait look again when their connections were cut', async () => {
    const key = await newKey();
    const { lock, waiting } = await heldAndAwaited(key);
    for (const node of cluster.nodes) await node.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await lock.release();
    await expectSoon(waiting);

    const again = await heldAndAwaited(key);
    for (const node of cluster.nodes) await node.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await eventually(() => isHeard(key));
    await again.lock.release();
    await expectSoon(again.waiting);
  });

  it.each(['after it is heard there', 'at once'])(
    'follows a slot that moves while somebody waits in it; released %s',
    async (when) => {
      const key = await newKey();
      const { lock, waiting } = await heldAndAwaited(key);
      const [before] = await lineAt(key);
      await cluster.moveSlot(`lock:${key}`);
      if (when !== 'at once') {
        await eventually(() => isHeard(key));
        expect(await lineAt(key)).toEqual([before]);
      }
      await lock.release();
      await expectSoon(waiting);
    },
  );

  it('follows a slot that moves while nobody needs it: else its process would stay deaf', async () => {
    const key = await newKey();
    const { lock, waiting } = await heldAndAwaited(key);
    const [member] = await lineAt(key);
    await lock.release();
    await (await waiting).release();
    await cluster.moveSlot(`lock:${key}`);
    await eventually(async () => (await listenersOf(key, String(member?.channel))) === 1);
  });

  it('follows a master that hands over to its replica', async () => {
    const key = await newKey();
    const { lock, waiting } = await heldAndAwaited(key);
    const replica = await replicaOf(await masterOf(key));
    await replica.command('CLUSTER', 'FAILOVER');
    await eventually(async () => (await masterOf(key)) === replica, { withinMs: ELECTED_MS });
    await eventually(() => lock.release(), { withinMs: ELECTED_MS });
    await expectSoon(waiting);
  }, 60_000);

  it('follows the successor of a master that died', async () => {
    const key = await newKey();
    const { lock, waiting } = await heldAndAwaited(key);
    const master = await masterOf(key);
    const replica = await replicaOf(master);
    await master.kill();
    try {
      await eventually(async () => (await masterOf(key)) === replica, { withinMs: ELECTED_MS });
      await eventually(() => isHeard(key), { withinMs: ELECTED_MS });
      await lock.release();
      await expectSoon(waiting);
    } finally {
      await master.restart();
      await eventually(
        async () => {
          expect(await master.command('ROLE')).toContain('connected');
        },
        { withinMs: ELECTED_MS },
      );
    }
  }, 90_000);

  it('follows a slot of which it had heard at a node that is not its master any more', async () => {
    const key = await newKey();
    const master = await masterOf(key);
    const tellsTruth = listensAt(await replicaOf(master), master);
    const { lock, waiting } = await heldAndAwaited(key, service({ slotsRefreshInterval: 50 }));
    expect(await isHeard(key)).toBe(false);
    tellsTruth();
    await eventually(() => isHeard(key), { withinMs: SOON_MS });
    await lock.release();
    await expectSoon(waiting);
  });

  /** A master that died, and is back, counts who listens there until it learns that it has a successor. Returns how to end that. */
  function listensAt(old: RedisServer, successor: RedisServer): () => void {
    const { prototype } = IoredisCluster;
    const { ownerOf, openSubscriber, command } = prototype;
    const [oldAddress, address] = [old, successor].map(({ port }) => `127.0.0.1:${String(port)}`);
    const lies = [
      jest.spyOn(prototype, 'ownerOf').mockImplementation(function (this: IoredisCluster, slot) {
        const owner = ownerOf.call(this, slot);
        return owner === address ? oldAddress : owner;
      }),
      jest.spyOn(prototype, 'openSubscriber').mockImplementation(function (
        this: IoredisCluster,
        events,
        at,
      ) {
        if (at !== oldAddress) return openSubscriber.call(this, events, at);
        return new IoredisSubscriber(new Redis({ port: old.port, lazyConnect: true }), events);
      }),
      jest.spyOn(prototype, 'command').mockImplementation(function (
        this: IoredisCluster,
        name,
        ...args
      ) {
        return name === 'spublish' ? Promise.resolve(1) : command.call(this, name, ...args);
      }),
    ];
    const end = (): void => {
      for (const lie of lies) lie.mockRestore();
    };
    closings.push(end);
    return end;
  }

  async function replicaOf(master: RedisServer): Promise<RedisServer> {
    const role = (await master.command('ROLE')) as [string, number, [string, string][]];
    const replica = cluster.nodes.find(({ port }) => String(port) === role[2][0]?.[1]);
    if (replica === undefined) throw new Error('no replica');
    return replica;
  }

  it('leaves no connection behind', async () => {
    const key = await newKey();
    const { lock, waiting } = await heldAndAwaited(key);
    await lock.release();
    await (await waiting).release();
    for (const close of closings.splice(0).reverse()) await close();
    await eventually(async () => {
      for (const node of cluster.nodes)
        expect(String(await node.command('CLIENT', 'LIST'))).not.toContain('holdfast');
    });
  });
});

describe('a user of a Cluster', () => {
  const user = async (name: string, ...rights: string[]): Promise<void> => {
    for (const node of cluster.nodes)
      await node.command('ACL', 'SETUSER', name, 'on', '>secret', ...rights);
  };

  it.each(['ssubscribe', 'spublish'])(
    'who must not %s is called on a plain channel, and this is said once',
    async (command) => {
      await user(`no-${command}`, '~*', '&*', '+@all', `-${command}`);
      const keys = [await newKey(), await newKey()];
      const waiter = service({ username: `no-${command}` });
      for (const key of keys) {
        const { lock, waiting } = await heldAndAwaited(key, waiter);
        const [member] = await lineAt(key);
        expect(member?.channel).toMatch(/^holdfast:[^{]+$/);
        await lock.release();
        await expectSoon(waiting);
      }
      expect(logged).toEqual([expect.stringMatching(/No sharded pub\/sub.*NOPERM.*SSUBSCRIBE/s)]);
    },
  );

  it('who has no channels looks by itself', async () => {
    await user('no-channels', '~*', 'resetchannels', '+@all');
    const key = await newKey();
    const lock = await service().acquire(key);
    const waiting = service({ username: 'no-channels' }).acquire(key, { wait: TTL_MS });
    await eventually(() => logged.length > 0);
    await lock.release();
    await expectSoon(waiting);
    expect(logged).toEqual([expect.stringMatching(/Cannot be notified of releases/)]);
  });

  it('who must not count listeners is called all the same', async () => {
    await user('no-counting', '~*', '&*', '+@all', '-pubsub|shardnumsub');
    const key = await newKey();
    const lock = await service({ username: 'no-counting' }).acquire(key);
    const waiting = service({ username: 'no-counting' }).acquire(key, { wait: TTL_MS });
    await stand(key, 1);
    await lock.release();
    await expectSoon(waiting);
  });

  it('with the rights that the documentation lists is denied nothing', async () => {
    const [node] = cluster.nodes as [RedisServer];
    await user('listed', 'resetchannels', ...(await documentedRights(node, 'A Cluster')));
    for (const node of cluster.nodes) await node.command('ACL', 'LOG', 'RESET');
    const keys = await Promise.all((await masters()).map((master) => newKey(master)));
    const [first, second] = [service({ username: 'listed' }), service({ username: 'listed' })];
    await Promise.all([first.open(), second.open()]);
    const locks = await Promise.all(keys.map((key) => first.acquire(key)));
    const waits = keys.map((key) => second.acquire(key, { wait: TTL_MS }));
    await Promise.all(keys.map((key) => stand(key, 1)));
    await Promise.all(locks.map((lock) => lock.extend()));
    await Promise.all(locks.map((lock) => lock.release()));
    await Promise.all(waits.map(async (waiting) => (await waiting).release()));
    for (const { problem } of (await first.health()).nodes) expect(problem).toBeUndefined();
    for (const node of cluster.nodes) expect(await node.command('ACL', 'LOG')).toEqual([]);
    expect(logged).toEqual([]);
  });
});
