import { describe, expect, it } from '@jest/globals';
import {
  LockConfigurationError,
  LockLostError,
  LockNotAcquiredError,
  LockService,
  LockStoreUnavailableError,
  type Lock,
} from 'nestjs-holdfast';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { acquireScript } from '../../../lib/store/redis/scripts/acquire.js';
import { extendScript } from '../../../lib/store/redis/scripts/extend.js';
import { releaseScript } from '../../../lib/store/redis/scripts/release.js';
import { openStore, request } from '../../store/open-store.js';
import { eventually } from '../../support/eventually.js';
import { sendOnce } from '../../support/own-connection.js';
import type { RedisServer } from '../../support/redis-server.js';
import {
  LIMIT_MS,
  MINUTE_MS,
  services,
  at,
  masters,
  three,
  urlOf,
  nameOf,
  open,
  proxied,
  plant,
  holdersOf,
  leftOn,
  expectNothingLeftOn,
  holderOn,
  standsInLine,
  failureOf,
  aborted,
  lossesOf,
  timesSent,
  growing,
  useFiveMasters,
} from './quorum-stage.js';

const DAY_MS = 24 * 60 * 60 * 1_000;
/** Longer than a test may take: whoever waits for it to be over fails. */
const TOO_LONG_MS = 28_000;

useFiveMasters();

describe('a quorum: who gets the lock', () => {
  it.each([2, 4])(
    'TR-01 refuses, and does not wait indefinitely, when %i nodes are split in halves',
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

  it('TR-05 a vote that arrives after the release of its lock is removed', async () => {
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

  it('TR-51 a lock is reported as held, although a minority of the masters is down or silent', async () => {
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
      for (const { node } of error.nodes) expect(error.detail).toContain(node);
      for (const text of [
        inspect(error, { depth: 10, showHidden: true }),
        error.message,
        error.detail,
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
    // Two have granted it. The last one may be slower.
    await eventually(async () =>
      expect(await holdersOf(three(), 'in jeopardy')).toEqual([token, token, token]),
    );
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

  it('TR-07 without a majority, a lock is held until its deadline, and then released on the other nodes', async () => {
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
    // What came of the grant and of the place in line may still be on its way; a timer that cannot wait so long would never be quiet.
    await eventually(async () => {
      expect(await first.commandsSentDuring(() => sleep(300))).toEqual([]);
    });
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
  it('TR-09 a lock survives the restart of all nodes, one after the other', async () => {
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

  it('TR-09 a renewal that took long puts a lost key back, while the lock is held', async () => {
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

describe('leases that nobody gives back', () => {
  /** The store looks for those that have ended every now and then: after some hundred grants. */
  const LEASES = 600;
  const AT_ONCE = 30;

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
      for (let first = 0; first < LEASES; first += AT_ONCE) {
        const numbers = Array.from({ length: AT_ONCE }, (_, index) => String(first + index));
        const grants = numbers.map((number) => grant(`${name}:${number}`, ttlMs));
        granted.push(...(await Promise.all(grants)));
      }
      return granted;
    };
    try {
      const short = await grantMany('short', 1_500);
      await eventually(
        async () => (await three()[0].command('EXISTS', `lock:short:${LEASES - 1}`)) === 0,
      );
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
