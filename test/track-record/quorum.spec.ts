import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Cluster } from 'ioredis';
import {
  LockConfigurationError,
  LockLostError,
  LockNotAcquiredError,
  LockService,
  LockStoreUnavailableError,
  type Lock,
  type LockEvents,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { acquireScript } from '../../lib/store/redis/scripts/acquire.js';
import { extendScript } from '../../lib/store/redis/scripts/extend.js';
import { releaseScript } from '../../lib/store/redis/scripts/release.js';
import type { Script } from '../../lib/store/redis/scripts/script.js';
import { eventually } from '../support/eventually.js';
import { watchHandles } from '../support/no-leaks.js';
import { sendOnce } from '../support/own-connection.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisServer } from '../support/redis-server.js';
import { watchRejections } from '../support/scripted-service.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { openStore, request } from '../store/open-store.js';

const DAY_MS = 24 * 60 * 60 * 1_000;
const MINUTE_MS = 60_000;
/** Longer than a test may take: whoever waits for it to be over fails. */
const TOO_LONG_MS = 28_000;
/** For tests in which nobody may wait for `TOO_LONG_MS`, or for the end of a lease of a minute. */
const LIMIT_MS = 25_000;

const handles = watchHandles();
const rejections = watchRejections();
const services: LockService[] = [];
const proxies: TcpProxy[] = [];
let five: readonly RedisServer[] = [];

const at = <T>(list: readonly T[], index: number): T => {
  const item = list[index];
  if (item === undefined) throw new Error(`There is no number ${index}.`);
  return item;
};

const masters = (count: number): readonly RedisServer[] => five.slice(0, count);

/** The three that most of these tests need. */
const three = (): readonly [RedisServer, RedisServer, RedisServer] => [
  at(five, 0),
  at(five, 1),
  at(five, 2),
];

const urlOf = ({ port }: { readonly port: number }): string => `redis://127.0.0.1:${port}`;
const nameOf = ({ port }: { readonly port: number }): string => `127.0.0.1:${port}`;

async function open(
  nodes: readonly { readonly port: number }[],
  options: Partial<LockModuleOptions> = {},
): Promise<LockService> {
  const service = new LockService({ redis: nodes.map(urlOf), ttl: MINUTE_MS, ...options });
  services.push(service);
  await service.open();
  return service;
}

async function proxied(server: RedisServer): Promise<TcpProxy> {
  const proxy = await TcpProxy.start(server.port);
  proxies.push(proxy);
  return proxy;
}

/** Somebody else's token, on these nodes. */
async function plant(
  nodes: readonly RedisServer[],
  key: string,
  token = 'somebody else',
): Promise<void> {
  for (const node of nodes) await node.command('SET', `lock:${key}`, token, 'PX', MINUTE_MS);
}

/** Whose the key is, on each node. */
const holdersOf = (nodes: readonly RedisServer[], key: string): Promise<unknown[]> =>
  Promise.all(nodes.map((node) => node.command('GET', `lock:${key}`)));

/** All keys that are on these nodes, but the fences, which outlive their leases. */
async function leftOn(nodes: readonly RedisServer[]): Promise<readonly string[]> {
  const lists = await Promise.all(nodes.map((node) => node.command('KEYS', '*')));
  return (lists as string[][]).flat().filter((name) => !name.endsWith(':fence'));
}

const expectNothingLeftOn = (nodes: readonly RedisServer[]): Promise<unknown> =>
  eventually(async () => {
    expect(await leftOn(nodes)).toEqual([]);
  });

/** Whose the key is on this node, once it has voted: the others may have decided before. */
const holderOn = (node: RedisServer, key: string): Promise<unknown> =>
  eventually(() => node.command('GET', `lock:${key}`));

/** Until somebody stands in line for the key on a majority of these nodes: those decide, and one of the others may have refused the holder. */
const standsInLine = (nodes: readonly RedisServer[], key: string): Promise<unknown> =>
  eventually(async () => {
    const lines = await Promise.all(
      nodes.map((node) => node.command('EXISTS', `{lock:${key}}:queue`)),
    );
    expect(lines.filter((line) => line === 1).length).toBeGreaterThan(nodes.length / 2);
  });

async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  const value = await promise.catch((error: unknown) => ({ error }));
  if (typeof value === 'object' && value !== null && 'error' in value) return value.error;
  throw new Error(`It did not fail, but gave ${inspect(value)}.`);
}

const aborted = (signal: AbortSignal): Promise<unknown> =>
  signal.aborted
    ? Promise.resolve()
    : new Promise((resolve) => {
        signal.addEventListener('abort', resolve, { once: true });
      });

function lossesOf(service: LockService): LockEvents['lost'][] {
  const losses: LockEvents['lost'][] = [];
  service.on('lost', (event) => losses.push(event));
  return losses;
}

/** How often a script was sent to the server while `work` ran. */
async function timesSent(
  script: Script,
  server: RedisServer,
  work: () => Promise<unknown>,
): Promise<number> {
  const commands = await server.commandsSentDuring(work);
  return commands.filter(([, first]) => first === script.sha || first === script.lua).length;
}

const growing = (tokens: readonly number[]): readonly number[] =>
  [...new Set(tokens)].sort((one, other) => one - other);

beforeAll(async () => {
  Logger.overrideLogger(false);
  five = await Promise.all([1, 2, 3, 4, 5].map(() => RedisServer.start()));
}, MINUTE_MS);

afterEach(async () => {
  for (const server of five) if (server.isRunning) server.thaw();
  for (const proxy of proxies) proxy.resume();
  await Promise.all(services.splice(0).map((service) => service.shutdown(0)));
  await Promise.all(proxies.splice(0).map((proxy) => proxy.stop()));
  for (const server of five) {
    if (!server.isRunning) await server.restart();
    await server.command('FLUSHALL');
  }
}, MINUTE_MS);

afterAll(async () => {
  await Promise.all(five.map((server) => server.stop()));
  await handles.expectNoneOpen();
  await rejections.expectNone();
}, MINUTE_MS);

describe('a quorum: who gets the lock', () => {
  it.each([2, 4])(
    'TR-01 refuses, and does not wait for ever, when %i nodes are split in halves',
    async (count) => {
      const nodes = masters(count);
      const [taken, free] = [nodes.slice(0, count / 2), nodes.slice(count / 2)];
      const locks = await open(nodes);
      await plant(taken, 'split');

      expect(await locks.tryAcquire('split')).toBeNull();
      for (const wait of [0, 300]) {
        const refusal = await failureOf(locks.acquire('split', { wait }));
        expect(refusal).toBeInstanceOf(LockNotAcquiredError);
      }
      await eventually(async () => {
        expect(await holdersOf(free, 'split')).toEqual(free.map(() => null));
      });
      expect(await holdersOf(taken, 'split')).toEqual(taken.map(() => 'somebody else'));

      // Between two others it is the same.
      await plant(free, 'split', 'a third');
      expect(await locks.tryAcquire('split')).toBeNull();

      const waiting = locks.acquire('split', { wait: '20s' });
      await at(taken, 0).command('DEL', 'lock:split');
      for (const node of free) await node.command('DEL', 'lock:split');
      expect((await waiting).isHeld).toBe(true);
    },
  );

  it.each([
    ['than the TTL', { ttl: 300, clockDrift: 0 }, 450],
    ['than what can be relied on of the TTL', { ttl: 1_500, clockDrift: 0.5 }, 900],
  ])(
    'TR-02 refuses a lock of which the nodes told later %s, and takes it back from all of them',
    async (_than, options, delayMs) => {
      const nodes = three();
      const slow = await Promise.all(nodes.map(proxied));
      const locks = await open(slow, { ...options, nodeTimeout: 10_000 });
      await locks.run('another', { ttl: MINUTE_MS }, () => undefined); // so that Redis has the scripts
      for (const proxy of slow) proxy.delay(delayMs, 'to-client');

      const [first, second, third] = nodes;
      const failures: unknown[] = [];
      const attempt = async (): Promise<void> => {
        failures.push(await failureOf(locks.tryAcquire('late')));
        await expectNothingLeftOn(nodes);
      };
      let [atSecond, atThird] = [0, 0];
      const atFirst = await timesSent(releaseScript, first, async () => {
        atSecond = await timesSent(releaseScript, second, async () => {
          atThird = await timesSent(releaseScript, third, attempt);
        });
      });
      expect(failures).toEqual([expect.any(LockStoreUnavailableError)]);
      for (const times of [atFirst, atSecond, atThird]) expect(times).toBeGreaterThan(0);
    },
  );

  it('TR-03 is not refused by its own votes of the try before', async () => {
    const [first, second, third] = three();
    const locks = await open(three());
    await plant([first, second], 'retried');
    const waiting = locks.acquire('retried', { wait: '20s' });
    await standsInLine([first, second], 'retried');

    // The third node voted for every try; now the first one is free too.
    await first.command('DEL', 'lock:retried');
    expect((await waiting).isHeld).toBe(true);
    const [one, other, foreign] = await holdersOf([first, third, second], 'retried');
    expect(one).toBe(other);
    expect(foreign).toBe('somebody else');
  });

  it('TR-08 has no option for a smaller quorum, nor for retries', () => {
    for (const name of [
      'quorum',
      'retryCount',
      'retryDelay',
      'retryJitter',
      'driftFactor',
      'automaticExtensionThreshold',
    ]) {
      const options = { redis: three().map(urlOf), [name]: 1 };
      expect(() => new LockService(options)).toThrow(LockConfigurationError);
    }
  });

  it.each([
    [1, 3],
    [2, 5],
  ])(
    'TR-08 takes %i vote(s) of %i for no lock: held by others, or the others down',
    async (votes, count) => {
      const nodes = masters(count);
      const [voters, others] = [nodes.slice(0, votes), nodes.slice(votes)];
      const locks = await open(nodes);
      await plant(others, 'key');
      expect(await locks.tryAcquire('key')).toBeNull();
      await eventually(async () => {
        expect(await holdersOf(voters, 'key')).toEqual(voters.map(() => null));
      });

      await Promise.all(others.map((server) => server.kill()));
      for (const attempt of [
        locks.tryAcquire('key'),
        locks.acquire('key', { wait: 200 }),
        locks.run('key', { wait: 0 }, () => 'ran'),
      ]) {
        expect(await failureOf(attempt)).toBeInstanceOf(LockStoreUnavailableError);
      }
      await expectNothingLeftOn(voters);
    },
  );

  it('TR-52 takes several keys on a majority of the nodes, or none of them anywhere', async () => {
    const [first, second, third] = three();
    const nodes = three();
    const keys = ['a', 'b', 'c'];
    const locks = await open(nodes);

    // One of the keys is somebody else's on a minority: that node gives none of them, and is not needed.
    await plant([first], 'b');
    const lock = await locks.acquire(keys);
    for (const key of keys) {
      const [atFirst, atSecond, atThird] = await holdersOf(nodes, key);
      expect(atFirst).toBe(key === 'b' ? 'somebody else' : null);
      expect(atSecond).toEqual(expect.any(String));
      expect(atThird).toBe(atSecond);
    }
    for (const key of keys) expect(await locks.tryAcquire(key)).toBeNull();
    expect(await lock.release()).toBe(true);
    await first.command('DEL', 'lock:b');
    await expectNothingLeftOn(nodes);

    // On a majority; on each node another key.
    await plant([first, second], 'c');
    expect(await locks.tryAcquire(keys)).toBeNull();
    for (const node of [first, second]) await node.command('DEL', 'lock:c');
    await expectNothingLeftOn(nodes);
    for (const [index, node] of nodes.entries()) await plant([node], at(keys, index));
    expect(await locks.tryAcquire(keys)).toBeNull();
    await eventually(async () => {
      expect([...(await leftOn(nodes))].sort()).toEqual(['lock:a', 'lock:b', 'lock:c']);
    });
    for (const [index, node] of nodes.entries())
      await node.command('DEL', `lock:${at(keys, index)}`);

    // One of two is left: too few.
    await third.kill();
    await plant([second], 'a');
    await failureOf(locks.acquire(keys, { wait: 0 }));
    await second.command('DEL', 'lock:a');
    await expectNothingLeftOn([first, second]);
    expect(await locks.run(keys, { wait: '20s' }, () => 'works')).toBe('works');
  });
});

describe('a quorum: nodes that are silent, slow or down', () => {
  it.each([0, 1, 2])(
    'TR-04 waits for a silent node number %i nowhere',
    async (number) => {
      const options = { nodeTimeout: TOO_LONG_MS };
      const [one, other] = [await open(three(), options), await open(three(), options)];
      // They find out that it is silent only at the end of its time limit: until then each request hopes for it.
      at(three(), number).freeze();

      const lock = await one.acquire('key');
      await lock.extend();
      expect(await other.tryAcquire('key')).toBeNull();
      expect(await other.tryRun('key', () => 'ran')).toMatchObject({ acquired: false });
      expect(await failureOf(other.acquire('key', { wait: 0 }))).toBeInstanceOf(
        LockNotAcquiredError,
      );
      expect(await other.inspect('key')).toMatchObject({ held: true });
      const waiting = other.acquire('key', { wait: '20s' });
      await standsInLine(
        three().filter((_, index) => index !== number),
        'key',
      );
      expect(await lock.release()).toBe(true);
      const next = await waiting;
      expect(await one.forceRelease('key')).toBe(true);
      await expect(next.extend()).rejects.toBeInstanceOf(LockLostError);
      expect(await one.run('key', { wait: 0 }, () => 'ran')).toBe('ran');
      expect(await one.run(['key', 'another'], () => 'ran')).toBe('ran');
      expect(await one.inspect('key')).toEqual({ held: false });
    },
    LIMIT_MS,
  );

  it('TR-04 nor for one that was found silent', async () => {
    const [, , silent] = three();
    const options = { nodeTimeout: 300 };
    const [one, other] = [await open(three(), options), await open(three(), options)];
    silent.freeze();
    for (const locks of [one, other]) {
      // Asked by what waits for all nodes, so that its time limit is over.
      expect((await locks.health()).nodes.map(({ reachable }) => reachable)).toEqual([
        true,
        true,
        false,
      ]);
    }
    for (let round = 0; round < 5; round += 1) {
      const lock = await one.acquire('key', { wait: 0 });
      await lock.extend();
      expect(await other.tryAcquire('key')).toBeNull();
      expect(await failureOf(other.acquire('key', { wait: 0 }))).toBeInstanceOf(
        LockNotAcquiredError,
      );
      expect(await lock.release()).toBe(true);
    }
  });

  it('TR-05 removes a vote that is cast when its lock was released long ago', async () => {
    const [first, second, third] = three();
    const late = await proxied(third);
    const locks = await open([first, second, late], { nodeTimeout: 20_000 });
    await locks.run('another', () => undefined); // so that Redis has the scripts
    late.pause('to-server');
    const lock = await locks.acquire('late');
    expect(await lock.release()).toBe(true);
    expect(await locks.run(['late', 'too'], () => 'ran')).toBe('ran');
    late.resume();
    await sendOnce(late.port, ['PING']); // arrives behind everything that was held
    await expectNothingLeftOn(three());
  });

  it('TR-05 also when nobody waited for that vote any longer', async () => {
    const [first, second, third] = three();
    const late = await proxied(third);
    const locks = await open([first, second, late], { nodeTimeout: 150 });
    await locks.run('another', () => undefined);
    late.pause('to-server');
    const lock = await locks.acquire('late');
    await eventually(async () => (await locks.health()).nodes[2]?.reachable === false);
    expect(await lock.release()).toBe(true);
    await plant([first, second], 'refused');
    expect(await locks.tryAcquire('refused')).toBeNull();
    const votes = await timesSent(acquireScript, third, async () => {
      late.resume();
      await sendOnce(late.port, ['PING']);
      await eventually(async () => (await locks.health()).nodes[2]?.reachable === true);
    });
    expect(votes).toBeGreaterThan(0);
    await eventually(async () => {
      expect(await leftOn([third])).toEqual([]);
    });
  });

  it('TR-05 also when the node did not know the script of the vote', async () => {
    const [first, second, third] = three();
    const late = await proxied(third);
    const locks = await open([first, second, late]);
    await third.command('SCRIPT', 'FLUSH');
    await third.command('SCRIPT', 'LOAD', releaseScript.lua);
    // Sent again with its text when the node has said so: by then the release has come and gone.
    late.pause('to-client');
    await locks.run('late', () => undefined);
    const sentAgain = late.whenClientSends('eval\r\n');
    late.resume();
    await sentAgain;
    await sendOnce(late.port, ['PING']);
    await expectNothingLeftOn([third]);
  });

  it(
    'TR-05 also when the node is a Cluster, which votes slot by slot',
    async () => {
      const [first, second] = three();
      const cluster = await RedisCluster.start();
      const client = new Cluster(cluster.startupNodes, { lazyConnect: true });
      try {
        const redis = [urlOf(first), urlOf(second), client];
        const locks = new LockService({ redis, ttl: MINUTE_MS });
        services.push(locks);
        await locks.open();
        for (let round = 0; round < 100; round += 1) {
          const keys = Array.from({ length: 4 + (round % 3) }, (_, index) => `${round}:${index}`);
          await locks.run(keys, () => undefined);
        }
        await expectNothingLeftOn(cluster.nodes);
      } finally {
        await Promise.all(services.splice(0).map((service) => service.shutdown(0)));
        client.disconnect();
        await cluster.stop();
      }
    },
    MINUTE_MS,
  );

  it('TR-04 nor when the service shuts down', async () => {
    const [, , silent] = three();
    const options = { nodeTimeout: TOO_LONG_MS };
    const [holder, other] = [await open(three(), options), await open(three(), options)];
    silent.freeze();
    await holder.acquire('key');
    expect(await other.tryAcquire('key')).toBeNull();
    const since = performance.now();
    const down = other.shutdown(0);
    // A second more than it was given, and what a loaded machine may add.
    await Promise.race([down, sleep(6_000, undefined, { ref: false })]);
    silent.thaw();
    expect(performance.now() - since).toBeLessThan(5_000);
    await down;
  });

  it('TR-51 says that somebody holds it, although a minority is down or silent', async () => {
    for (const count of [3, 5]) {
      const nodes = masters(count);
      const options = { nodeTimeout: 300 };
      const [holder, other] = [await open(nodes, options), await open(nodes, options)];
      const lock = await holder.acquire('key');
      await at(nodes, 0).kill();
      if (count === 5) at(nodes, 1).freeze();
      expect(await other.health()).toMatchObject({ hasQuorum: true }); // it has found out by now
      for (let round = 0; round < 3; round += 1) {
        expect(await other.tryAcquire('key')).toBeNull();
        const refusal = await failureOf(other.acquire('key', { wait: 0 }));
        expect(refusal).toBeInstanceOf(LockNotAcquiredError);
        expect((refusal as LockNotAcquiredError).getStatus()).toBe(409);
        expect((refusal as LockNotAcquiredError).retryAfterMs).toBeGreaterThan(0);
        const late = await failureOf(other.acquire('key', { wait: 100 }));
        expect(late).toBeInstanceOf(LockNotAcquiredError);
      }
      expect(await lock.release()).toBe(true);
      at(nodes, 1).thaw();
      await at(nodes, 0).restart();
    }
  });

  const whatHappens = async (waits: readonly number[]): Promise<void> => {
    const SECRET = 'p4ss w%rd';
    const IN_URL = encodeURIComponent(SECRET);
    const nodes = masters(5);
    const [dead, silent, faulty, refusing, willing] = nodes as RedisServer[];
    const service = new LockService({
      redis: nodes.map(({ port }) => `redis://default:${IN_URL}@127.0.0.1:${port}`),
      nodeTimeout: 400,
    });
    services.push(service);
    await service.open();
    expect(await service.health()).toMatchObject({ hasQuorum: true });
    await dead?.kill();
    silent?.freeze();
    await faulty?.command('RPUSH', 'lock:key', 'no lock');
    if (refusing) await plant([refusing], 'key');

    for (const wait of waits) {
      const failure = await failureOf(service.acquire('key', { wait }));
      expect(failure).toBeInstanceOf(LockStoreUnavailableError);
      const error = failure as LockStoreUnavailableError;
      expect(error.getStatus()).toBe(503);
      const kinds = new Map(error.nodes.map(({ node, kind }) => [node, kind]));
      expect(error.nodes).toHaveLength(kinds.size);
      expect(Object.fromEntries(kinds)).toMatchObject({
        [nameOf(at(nodes, 0))]: 'connection',
        [nameOf(at(nodes, 1))]: expect.stringMatching(/^(timeout|connection)$/),
        [nameOf(at(nodes, 2))]: 'error',
        [nameOf(at(nodes, 3))]: 'refused',
      });
      for (const { message } of error.nodes) expect(message).not.toBe('');
      for (const { node } of error.nodes) expect(error.message).toContain(node);
      for (const text of [
        inspect(error, { depth: 10, showHidden: true }),
        error.message,
        JSON.stringify(error),
      ]) {
        expect(text).not.toContain(SECRET);
        expect(text).not.toContain(IN_URL);
      }
    }
    if (willing) {
      await eventually(async () => {
        expect(await leftOn([willing])).toEqual([]);
      });
    }
  };

  it('TR-51 says of each node what happened when a majority is down, without secrets', () =>
    whatHappens([0]));

  it('TR-51 also of one that was silent before', () => whatHappens([0, 0, 300]));
});

describe('a quorum: holding', () => {
  it('TR-06 counts the validity from the sending of the request, not from its answers', async () => {
    const [first, second, third] = three();
    const slow = await Promise.all([first, second].map(proxied));
    const locks = await open([...slow, third], { ttl: 5_000, nodeTimeout: 4_000 });
    for (const proxy of slow) proxy.delay(400, 'to-client');
    const since = performance.now();
    const lock = await locks.acquire('slow answers');
    expect(lock.remainingMs).toBeLessThan(5_000 - 400 + 1);
    expect(lock.remainingMs).toBeGreaterThan(5_000 - (performance.now() - since) - 60);
  });

  it('TR-06 counts it from the request that won, not from the first try', async () => {
    const [first, second] = three();
    const locks = await open(three(), { ttl: 5_000 });
    await plant([first, second], 'held');
    const held = locks.acquire('held', { wait: '20s' });
    await standsInLine([first, second], 'held');
    await sleep(1_000);
    let since = performance.now();
    await first.command('DEL', 'lock:held');
    const lock = await held;
    expect(lock.remainingMs).toBeGreaterThan(4_900 - (performance.now() - since));

    // After tries that no majority answered it is the same.
    await Promise.all([first.kill(), second.kill()]);
    const down = locks.acquire('down', { wait: '20s' });
    await sleep(1_000);
    since = performance.now();
    await first.restart();
    const later = await down;
    expect(later.remainingMs).toBeGreaterThan(4_900 - (performance.now() - since));
  });

  it('TR-07 leaves the lock where it is when it could not be extended, and goes on when it can', async () => {
    const [first, second, third] = three();
    const locks = await open(three(), { ttl: 20_000, nodeTimeout: 300 });
    const losses = lossesOf(locks);
    const lock = await locks.acquire('in jeopardy', { autoExtend: false });
    const token = await holderOn(third, 'in jeopardy');
    for (const server of [first, second]) server.freeze();
    expect(await failureOf(lock.extend())).toBeInstanceOf(LockStoreUnavailableError);
    expect(lock.isHeld).toBe(true);
    expect(await holdersOf([third], 'in jeopardy')).toEqual([token]);

    for (const server of [first, second]) server.thaw();
    await eventually(() => lock.extend().then(() => true));
    expect(await holdersOf(three(), 'in jeopardy')).toEqual([token, token, token]);

    // One has lost it, one is silent, one has it: nobody knows, so it is not lost.
    await first.command('FLUSHALL');
    second.freeze();
    expect(await failureOf(lock.extend())).toBeInstanceOf(LockStoreUnavailableError);
    expect(lock.isHeld).toBe(true);
    expect(await holdersOf([third], 'in jeopardy')).toEqual([token]);
    second.thaw();
    await eventually(() => lock.extend().then(() => true));
    expect(losses).toEqual([]);
    expect(await lock.release()).toBe(true);
    await expectNothingLeftOn(three());
  });

  it('TR-07 holds it until its deadline when no majority comes back, and then takes it from the rest', async () => {
    const [first, second, third] = three();
    const locks = await open(three(), { ttl: 3_000 });
    const losses = lossesOf(locks);
    const since = performance.now();
    const lock = await locks.acquire('doomed');
    const token = await holderOn(third, 'doomed');
    await Promise.all([first.kill(), second.kill()]);
    expect(await failureOf(lock.extend())).toBeInstanceOf(LockStoreUnavailableError);
    expect(lock.isHeld).toBe(true);
    expect(await holdersOf([third], 'doomed')).toEqual([token]);
    await aborted(lock.signal);
    // Counted from the last renewal that a majority confirmed: from the grant, or later.
    expect(performance.now() - since).toBeGreaterThan(3_000 * 0.99 - 2 - 5);
    expect(losses).toMatchObject([{ keys: ['doomed'], reason: 'store-unavailable' }]);
    await expectNothingLeftOn([third]);
  });

  it('TR-10 holds and waits for 60 days without a renewal a moment', async () => {
    const locks = await open(three(), {
      ttl: 60 * DAY_MS,
      wait: 60 * DAY_MS,
      nodeTimeout: 60 * DAY_MS,
    });
    const lock = await locks.acquire('for long', { maxHold: 90 * DAY_MS });
    await lock.extend();
    const waiting = locks.acquire('for long');
    await standsInLine(three(), 'for long');
    const [first] = three();
    const sent = await first.commandsSentDuring(() => sleep(300));
    expect(sent).toEqual([]);
    expect(lock.isHeld).toBe(true);
    expect(lock.remainingMs).toBeGreaterThan(59 * DAY_MS);
    await lock.release();
    await (await waiting).release();
  });

  it('goes on while nodes are killed and come back, and is lost when a majority is gone', async () => {
    const [first, second, third] = three();
    const [holder, other] = [
      await open(three(), { ttl: 3_000 }),
      await open(three(), { ttl: 3_000 }),
    ];
    const losses = lossesOf(holder);
    const keys = Array.from({ length: 20 }, (_, index) => `key:${index}`);
    const locks = await Promise.all(keys.map((key) => holder.acquire(key)));

    await second.kill();
    await Promise.all(locks.map((lock) => lock.extend()));
    for (const key of keys) expect(await other.tryAcquire(key)).toBeNull();
    await second.restart();
    await eventually(async () => {
      expect(await second.command('EXISTS', ...keys.map((key) => `lock:${key}`))).toBe(20);
    });
    for (const lock of locks.splice(0, 10)) expect(await lock.release()).toBe(true);
    expect(losses).toEqual([]);

    await Promise.all([first.kill(), third.kill()]);
    await Promise.all(locks.map(({ signal }) => aborted(signal)));
    expect(losses.map(({ reason }) => reason)).toEqual(Array(10).fill('store-unavailable'));
    await expectNothingLeftOn([second]);
    await first.restart();
    expect(await other.run(keys, { wait: '20s' }, () => 'works')).toBe('works');
  });
});

describe('a quorum: a node that lost its data', () => {
  it('TR-09 is healed: a lock survives the restart of all nodes, one after the other', async () => {
    const [holder, other] = [await open(three(), { ttl: 3_000 }), await open(three())];
    const losses = lossesOf(holder);
    const lock = await holder.acquire('held for long');
    const token = await holderOn(at(three(), 0), 'held for long');
    for (const server of three()) {
      await server.restart();
      expect(await other.tryAcquire('held for long')).toBeNull();
      await eventually(
        async () => {
          expect(await holdersOf([server], 'held for long')).toEqual([token]);
        },
        { withinMs: 15_000 },
      );
    }
    expect(lock.isHeld).toBe(true);
    expect(losses).toEqual([]);
    expect(await other.tryAcquire('held for long')).toBeNull();
    expect(await lock.release()).toBe(true);
    await expectNothingLeftOn(three());
  });

  /** A lock whose key the third node has lost; what would put it back there is held on its way until `arrive` is called. */
  async function withHealingOnItsWay(key: string): Promise<{
    readonly lock: Lock;
    readonly other: LockService;
    readonly arrive: () => Promise<void>;
  }> {
    const [first, second, third] = three();
    const late = await proxied(third);
    const holder = await open([first, second, late], { nodeTimeout: 20_000 });
    const other = await open(three());
    const lock = await holder.acquire(key);
    await lock.extend(); // so that Redis has the script
    await third.command('FLUSHALL');

    late.pause('to-client');
    const before = (await third.commandStats()).get('evalsha') ?? 0;
    await lock.extend();
    await eventually(async () => ((await third.commandStats()).get('evalsha') ?? 0) > before);
    // The third node has said that the key is gone, and nobody has heard it yet.
    late.pause('to-server');
    const sent = late.whenClientSends(extendScript.sha);
    late.resume('to-client');
    await sent;
    expect(await holdersOf([third], key)).toEqual([null]);
    const arrive = async (): Promise<void> => {
      late.resume();
      await sendOnce(late.port, ['PING']);
    };
    return { lock, other, arrive };
  }

  it('TR-09 is healed by a renewal that was long on its way, while the lock is held', async () => {
    const { lock, arrive } = await withHealingOnItsWay('held');
    await arrive();
    const token = await holderOn(at(three(), 0), 'held');
    await eventually(async () => {
      expect(await holdersOf(three(), 'held')).toEqual([token, token, token]);
    });
    expect(await lock.release()).toBe(true);
    await expectNothingLeftOn(three());
  });

  it('TR-09 is not healed once the lock was released', async () => {
    const { lock, arrive } = await withHealingOnItsWay('released');
    expect(await lock.release()).toBe(true);
    await arrive();
    await expectNothingLeftOn(three());
  });

  it('TR-09 is not healed while somebody else holds it, nor when somebody else held it since', async () => {
    const [, , third] = three();
    const { lock, other, arrive } = await withHealingOnItsWay('passed on');
    expect(await other.forceRelease('passed on')).toBe(true);
    const next = await other.acquire('passed on');
    const token = await holderOn(third, 'passed on');
    await arrive();
    expect(await holdersOf([third], 'passed on')).toEqual([token]);
    expect(await next.release()).toBe(true);
    await expectNothingLeftOn(three());
    expect(await failureOf(lock.extend())).toBeInstanceOf(LockLostError);

    const again = await withHealingOnItsWay('and back');
    expect(await again.other.forceRelease('and back')).toBe(true);
    await again.other.run('and back', () => undefined);
    await eventually(async () => (await holdersOf([third], 'and back'))[0] === null);
    await again.arrive();
    await expectNothingLeftOn(three());
  });

  it('TR-09 is not healed when the lock was released by force', async () => {
    const { lock, other, arrive } = await withHealingOnItsWay('by force');
    expect(await other.forceRelease('by force')).toBe(true);
    await arrive();
    expect(await failureOf(lock.extend())).toBeInstanceOf(LockLostError);
    await expectNothingLeftOn(three());
  });

  it('gives back what is left of a lock that a majority has lost', async () => {
    const [first, second] = three();
    const locks = await open(three());
    const lock = await locks.acquire('key');
    for (const server of [first, second]) await server.command('FLUSHALL');
    expect(await failureOf(lock.extend())).toBeInstanceOf(LockLostError);
    await expectNothingLeftOn(three());
  });

  it('TR-09 is never healed when it is the only one', async () => {
    const [only] = three();
    const locks = await open([only]);
    const lock = await locks.acquire('forgotten');
    await only.command('FLUSHALL');
    expect(await failureOf(lock.extend())).toMatchObject({ reason: 'released-elsewhere' });
    expect(await holdersOf([only], 'forgotten')).toEqual([null]);
    expect(await locks.run('forgotten', { wait: 0 }, () => 'ran')).toBe('ran');
  });

  it('TR-56 does not make fencing tokens smaller', async () => {
    const locks = await open(three(), { wait: '20s' });
    const tokens: number[] = [];
    const next = async (): Promise<void> => {
      tokens.push(await locks.run('key', ({ fencingToken }) => fencingToken));
    };
    // An hour ahead of the clocks, so that nothing but the other nodes' memory keeps it from falling.
    const ahead = String((Date.now() + 60 * MINUTE_MS) * 1_000);
    for (const server of three()) {
      await server.command('SET', '{lock:key}:fence', ahead, 'PX', 10 * MINUTE_MS);
    }
    await next();
    for (let round = 0; round < 2; round += 1) {
      for (const server of three()) {
        if (round === 0) await server.command('FLUSHALL');
        else await server.restart();
        await next();
        await next();
      }
    }
    expect(tokens).toEqual(growing(tokens));
    expect(tokens[0]).toBeGreaterThan(Number(ahead));
  });

  it('TR-56 nor does it when all have, if their clocks go on', async () => {
    const locks = await open(three());
    const tokens: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      const token = await locks.run('key', ({ fencingToken }) => fencingToken);
      tokens.push(token);
      // HF-5 it is ahead of the clocks by a few ms at the most, and until they have passed it nothing but the fences holds it up.
      await eventually(async () => {
        for (const server of three()) {
          const [seconds, us] = (await server.command('TIME')) as string[];
          expect(Number(seconds) * 1_000_000 + Number(us)).toBeGreaterThan(token);
        }
      });
      await Promise.all(three().map((server) => server.command('FLUSHALL')));
    }
    expect(tokens).toEqual(growing(tokens));
  });
});

describe('a quorum: fencing tokens', () => {
  it('grow, whichever two of three nodes are reachable, and however far apart their last ones are', async () => {
    const gates = await Promise.all(three().map(proxied));
    const locks = await open(gates, { nodeTimeout: 1_000, wait: '20s' });
    const farApartUs = 1_000_000_000;
    const nowUs = Date.now() * 1_000;
    for (const [index, server] of three().entries()) {
      const fence = String(nowUs + index * index * farApartUs);
      await server.command('SET', '{lock:key}:fence', fence, 'PX', 10 * MINUTE_MS);
    }
    const tokens: number[] = [];
    for (let turn = 0; turn < 9; turn += 1) {
      const away = turn % gates.length;
      const gate = at(gates, away);
      gate.refuse();
      gate.cut();
      await eventually(async () => {
        const { nodes } = await locks.health();
        expect(nodes.map(({ reachable }) => reachable)).toEqual(gates.map((_, i) => i !== away));
      });
      for (let grant = 0; grant < 3; grant += 1) {
        tokens.push(await locks.run('key', ({ fencingToken }) => fencingToken));
      }
      gate.accept();
      // A fence is lost now and then, too: of the one that comes back.
      if (turn >= 6) await at(three(), away).command('DEL', '{lock:key}:fence');
    }
    expect(tokens).toHaveLength(27);
    expect(tokens).toEqual(growing(tokens));
  });

  it('grow for many who ask in turns, of whom each reaches two other nodes', async () => {
    const [first, second, third] = three();
    const gone = await RedisServer.start();
    await gone.stop();
    const reach = [
      [first, second, gone],
      [gone, second, third],
      [first, gone, third],
    ];
    const clients = await Promise.all(reach.map((nodes) => open(nodes)));
    for (const [index, server] of three().entries()) {
      const fence = String(Date.now() * 1_000 + (3 - index) * 500_000_000);
      await server.command('SET', '{lock:key}:fence', fence, 'PX', 10 * MINUTE_MS);
    }
    const tokens: number[] = [];
    for (let grant = 0; grant < 60; grant += 1) {
      const client = at(clients, (grant * 7) % 3);
      tokens.push(await client.run('key', { wait: '20s' }, (lock) => lock.fencingToken));
    }
    expect(tokens).toEqual(growing(tokens));
  });
});

describe('a quorum: waiting', () => {
  it.each([3, 5])(
    'ends with the release, on %i nodes',
    async (count) => {
      const nodes = masters(count);
      const [holder, waiter] = [await open(nodes), await open(nodes)];
      for (let round = 0; round < 5; round += 1) {
        const lock = await holder.acquire('key', { autoExtend: false });
        const waiting = waiter.acquire('key', { wait: MINUTE_MS });
        await standsInLine(nodes, 'key');
        expect(await lock.release()).toBe(true);
        expect(await (await waiting).release()).toBe(true);
      }
    },
    LIMIT_MS,
  );

  it.each([0, 1, 2])(
    'ends with the release while node number %i is dead: from the start, or since they wait',
    async (number) => {
      const dead = at(three(), number);
      const alive = three().filter((server) => server !== dead);
      for (const when of ['while they wait', 'before']) {
        const [holder, waiter] = [await open(three()), await open(three())];
        const lock = await holder.acquire('key', { autoExtend: false });
        const waiting = waiter.acquire('key', { wait: MINUTE_MS });
        await standsInLine(dead.isRunning ? three() : alive, 'key');
        if (when === 'while they wait') await dead.kill();
        expect(await lock.release()).toBe(true);
        expect(await (await waiting).release()).toBe(true);
      }
    },
    LIMIT_MS,
  );

  it('ends with the release by a holder that reaches other nodes than those who wait', async () => {
    const [first, second, third] = three();
    const gone = await RedisServer.start();
    await gone.stop();
    const holder = await open([first, second, gone]);
    const waiter = await open([gone, second, third]);
    const lock = await holder.acquire('key', { autoExtend: false });
    const waiting = waiter.acquire('key', { wait: MINUTE_MS });
    await standsInLine([second], 'key');
    expect(await lock.release()).toBe(true);
    expect((await waiting).isHeld).toBe(true);
  }, 25_000);

  /**
   * Services each of which is nearer to one of the nodes than the others are: when they ask at once, each has a vote of its own, and
   * none a majority.
   */
  async function withNodesOfTheirOwn(count: number): Promise<LockService[]> {
    const far = await Promise.all(three().map(proxied));
    for (const proxy of far) proxy.delay(5, 'to-server');
    return Promise.all(
      Array.from({ length: count }, (_, number) =>
        open(far.map((proxy, index) => (index === number % 3 ? at(three(), index) : proxy))),
      ),
    );
  }

  it.each(['in the same order', 'each another node first'])(
    'lets ten who ask at once have the lock, one after the other, again and again: %s',
    async (order) => {
      const contenders =
        order === 'in the same order'
          ? await Promise.all(Array.from({ length: 10 }, () => open(three())))
          : await withNodesOfTheirOwn(10);
      let [inside, most, done] = [0, 0, 0];
      for (let round = 0; round < 20; round += 1) {
        await Promise.all(
          contenders.map((locks) =>
            locks.run('key', { wait: '20s' }, async () => {
              most = Math.max(most, (inside += 1));
              await new Promise((resolve) => setImmediate(resolve));
              inside -= 1;
              done += 1;
            }),
          ),
        );
      }
      expect(done).toBe(200);
      expect(most).toBe(1);
      await expectNothingLeftOn(three());
    },
    2 * MINUTE_MS,
  );

  it.each([2, 3])(
    'gives the lock to at most one of %i who try at once, and leaves nothing of the others',
    async (count) => {
      const all = await withNodesOfTheirOwn(count);
      let granted = 0;
      for (let round = 0; round < 50; round += 1) {
        // They are told "yours" or "not yours", and nothing else: no node is down.
        const locks = await Promise.all(all.map((service) => service.tryAcquire('key')));
        const winners = locks.filter((lock) => lock !== null);
        expect(winners.length).toBeLessThanOrEqual(1);
        granted += winners.length;
        for (const lock of winners) expect(await lock.release()).toBe(true);
      }
      // All may go away empty-handed when their votes were split again and again; but that is not the rule.
      expect(granted).toBeGreaterThan(25);
      await expectNothingLeftOn(three());
      expect(await at(all, 0).tryRun('key', () => 'ran')).toMatchObject({ acquired: true });
    },
  );
});

describe('leases that nobody gives back', () => {
  it('HF-23 are forgotten after they have ended', async () => {
    const { store } = await openStore({ redis: three().map(urlOf), nodeTimeoutMs: 300 });
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const grant = async (key: string, ttlMs: number): Promise<WeakRef<object>> => {
      const lease = request(key, { ttlMs });
      expect(await store.acquire(lease)).toMatchObject({ status: 'granted' });
      return new WeakRef(lease);
    };
    const grantMany = async (name: string, ttlMs: number): Promise<readonly WeakRef<object>[]> => {
      const granted: WeakRef<object>[] = [];
      for (let number = 0; number < 600; number += 1) {
        granted.push(await grant(`${name}:${String(number)}`, ttlMs));
      }
      return granted;
    };
    try {
      const short = await grantMany('short', 300);
      await eventually(async () => (await three()[0].command('EXISTS', 'lock:short:599')) === 0);
      await sleep(700); // until every answer to a renewal, if one had been sent, would be over
      await grantMany('long', MINUTE_MS);
      await eventually(() => {
        collectGarbage();
        return short.every((lease) => lease.deref() === undefined);
      });
    } finally {
      await store.close();
    }
  }, 30_000);
});
