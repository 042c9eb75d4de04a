import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { LockService, type Lock, type LockModuleOptions } from 'nestjs-holdfast';
import { extendScript } from '../../../lib/store/redis/scripts/extend.js';
import { acquireScript } from '../../../lib/store/redis/scripts/acquire.js';
import { ChildScript } from '../../support/child-script.js';
import type { SentCommand } from '../../support/command-recorder.js';
import { eventually } from '../../support/eventually.js';
import { watchHandles } from '../../support/no-leaks.js';
import { RedisServer } from '../../support/redis-server.js';
import { watchRejections } from '../../support/scripted-service.js';
import { share } from '../../support/soak.js';
import type { WaitOrder } from './waits.js';

/** So long that a waiter who waits for the end of a lease fails its test. */
const LONG_TTL = 60_000;
const SOON_MS = 5_000;

/** For how long a process in line is given a key before it has confirmed that it is there. */
const CLAIM_MS = 1_000;

const KEY = 'key';
const WAIT_SCRIPT = new URL('./waits.ts', import.meta.url);
const SEVERAL_KEYS_SCRIPT = new URL('./several-keys.ts', import.meta.url);

const handles = watchHandles();
const rejections = watchRejections();
const services: LockService[] = [];
const children: ChildScript[] = [];
let server: RedisServer;
let redis: Redis;

function serviceAt(options: Partial<LockModuleOptions> = {}): LockService {
  const service = new LockService({ redis: server.url, ttl: LONG_TTL, wait: LONG_TTL, ...options });
  services.push(service);
  return service;
}

function start(script: URL, ...args: readonly (string | number)[]): ChildScript {
  const child = new ChildScript(script, args.map(String));
  children.push(child);
  return child;
}

/** Processes that have nothing to do: to start one takes longer than a test. */
const idle: ChildScript[] = [];

/** A process that stands in line. */
class Waiter {
  static readonly #busy = new Set<ChildScript>();
  readonly #child: ChildScript;

  private constructor(
    readonly name: string,
    child: ChildScript,
  ) {
    this.#child = child;
  }

  /** Kills those that wait or hold: after a test nobody does. */
  static async killBusy(): Promise<void> {
    await Promise.all([...Waiter.#busy].map((child) => child.kill()));
    Waiter.#busy.clear();
  }

  /** Ready to begin. */
  static async start(
    name: string,
    { ttl = LONG_TTL, holdMs = 0 }: { readonly ttl?: number; readonly holdMs?: number } = {},
  ): Promise<Waiter> {
    const child = idle.pop() ?? new ChildScript(WAIT_SCRIPT, [server.url]);
    Waiter.#busy.add(child);
    const order: WaitOrder = { key: KEY, name, options: { ttl }, holdMs };
    await redis.rpush(`orders:${child.pid}`, JSON.stringify(order));
    await eventually(() => redis.hexists('pids', name).then(Boolean), { withinMs: 20_000 });
    return new Waiter(name, child);
  }

  /** In line in this order. */
  static async line(...names: readonly string[]): Promise<readonly Waiter[]> {
    const waiters = await Promise.all(names.map((name) => Waiter.start(name)));
    for (const waiter of waiters) {
      const before = await redis.zcard(QUEUE);
      await waiter.begin();
      await eventually(async () => (await redis.zcard(QUEUE)) === before + 1);
    }
    return waiters;
  }

  /** Has the lock, and gives it back when nobody cares any more. */
  static async holding(ttl: number): Promise<Waiter> {
    const holder = await Waiter.start('holder', { ttl, holdMs: LONG_TTL });
    await holder.begin();
    await eventually(async () => (await grantedTo()).length === 1);
    return holder;
  }

  async begin(): Promise<void> {
    await redis.rpush(`begin:${this.name}`, 'now');
  }

  freeze(): void {
    process.kill(this.#child.pid, 'SIGSTOP');
  }

  thaw(): void {
    process.kill(this.#child.pid, 'SIGCONT');
  }

  async kill(): Promise<void> {
    Waiter.#busy.delete(this.#child);
    await this.#child.kill();
  }

  /** Resolves when it had the lock and has shut down. */
  async ends(): Promise<void> {
    const ended = eventually(() => redis.exists(`ended:${this.name}`).then(Boolean), {
      withinMs: LONG_TTL,
    });
    await Promise.race([ended, this.#child.output]); // which rejects if the process fails
    Waiter.#busy.delete(this.#child);
    idle.push(this.#child);
  }
}

const QUEUE = `{lock:${KEY}}:queue`;

const countSubscribers = async (): Promise<number> =>
  String(await redis.client('LIST', 'TYPE', 'PUBSUB'))
    .trim()
    .split('\n')
    .filter(Boolean).length;

/** Names, in the order in which they had the lock. */
const grantedTo = async (): Promise<string[]> =>
  (await redis.lrange(`granted:${KEY}`, '0', '-1')).map((entry) => entry.split(' ')[0] ?? '');

async function expectGrowingFences(first: Lock): Promise<void> {
  const later = await redis.lrange(`granted:${KEY}`, '0', '-1');
  const fences = [first.fencingToken, ...later.map((entry) => Number(entry.split(' ')[1]))];
  expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b));
}

/** A caller that is called begins with its claim, and renews it; or it asks for the lock with the token that it was called by. */
const ASKING: ReadonlySet<string> = new Set([acquireScript.sha, extendScript.sha]);

/** How often anybody asked for a lock. */
const asks = (commands: readonly SentCommand[]): number =>
  commands.filter(([name, sha = '']) => name === 'evalsha' && ASKING.has(sha)).length;

/** How many keys have expired, and leases and claims among them. */
const expired = async (): Promise<number> =>
  Number(/^expired_keys:(\d+)/m.exec(await redis.info('stats'))?.[1]);

beforeAll(async () => {
  Logger.overrideLogger(false); // connections are cut here on purpose
  server = await RedisServer.start();
  redis = new Redis(server.url);
});

beforeEach(async () => {
  await redis.flushall();
  await redis.config('RESETSTAT');
});

afterEach(async () => {
  await Waiter.killBusy();
  await Promise.all(children.splice(0).map((child) => child.kill()));
  await Promise.all(services.splice(0).map((service) => service.shutdown(0)));
});

afterAll(async () => {
  for (const { pid } of idle) await redis.rpush(`orders:${pid}`, '');
  await Promise.all(idle.map(({ output }) => output)); // each ends by itself
  redis.disconnect();
  await server.stop();
  await handles.expectNoneOpen();
  await rejections.expectNone();
});

describe('processes in line', () => {
  it('have the lock in the order of their tickets, by one request each', async () => {
    const lock = await serviceAt().acquire(KEY);
    const line = await Waiter.line('a', 'b', 'c', 'd');
    const commands = await server.commandsSentDuring(async () => {
      await lock.release();
      await Promise.all(line.map((waiter) => waiter.ends()));
    });
    expect(await grantedTo()).toEqual(['a', 'b', 'c', 'd']);
    expect(asks(commands)).toBe(4);
    expect(await expired()).toBe(0);
    await expectGrowingFences(lock);
  });

  it('TR-23 a killed process, at the head of the line or behind it, delays no other', async () => {
    const lock = await serviceAt().acquire(KEY);
    const [a, b, c, d] = await Waiter.line('a', 'b', 'c', 'd');
    await a!.kill();
    await c!.kill();
    await eventually(async () => (await countSubscribers()) === 2); // Redis knows it, too
    const since = performance.now();
    const commands = await server.commandsSentDuring(async () => {
      await lock.release();
      await Promise.all([b!.ends(), d!.ends()]);
    });
    expect(performance.now() - since).toBeLessThan(SOON_MS);
    expect(await grantedTo()).toEqual(['b', 'd']);
    // Called by the release, and not by a timer of theirs: no claim was over, and none asked in vain.
    expect(await expired()).toBe(0);
    expect(asks(commands)).toBe(2);
    expect(await redis.exists(QUEUE)).toBe(0);
  });

  it('TR-23 pay for one that is frozen at the head what it may claim, and it is served later', async () => {
    const lock = await serviceAt().acquire(KEY);
    const [a, b, c] = await Waiter.line('a', 'b', 'c');
    a!.freeze();
    const since = performance.now();
    await lock.release();
    await Promise.all([b!.ends(), c!.ends()]);
    const tookMs = performance.now() - since;
    a!.thaw();
    await a!.ends();
    expect(tookMs).toBeGreaterThan(CLAIM_MS - 50);
    expect(tookMs).toBeLessThan(CLAIM_MS + SOON_MS);
    expect(await grantedTo()).toEqual(['b', 'c', 'a']);
    expect(await expired()).toBe(1);
    await expectGrowingFences(lock);
  });

  // Only the second is told to look in a while: the third sleeps until the old holder's lease would have been over.
  it('pay for two that are frozen at the head what both may claim', async () => {
    const lock = await serviceAt().acquire(KEY);
    const [a, b, c] = await Waiter.line('a', 'b', 'c');
    a!.freeze();
    b!.freeze();
    await lock.release();
    const withinMs = 2 * CLAIM_MS + SOON_MS;
    await eventually(async () => (await grantedTo()).length > 0, { withinMs }).finally(() => {
      a!.thaw();
      b!.thaw();
    });
    await Promise.all([a!.ends(), b!.ends(), c!.ends()]);
    expect((await grantedTo())[0]).toBe('c');
  });

  it('pay nothing for one that is frozen in the middle until it is its turn', async () => {
    const lock = await serviceAt().acquire(KEY);
    const [a, b, c] = await Waiter.line('a', 'b', 'c');
    b!.freeze();
    const since = performance.now();
    await lock.release();
    await eventually(async () => (await grantedTo()).length === 1);
    b!.thaw();
    await Promise.all([a!.ends(), b!.ends(), c!.ends()]);
    expect(performance.now() - since).toBeLessThan(SOON_MS);
    expect((await grantedTo())[0]).toBe('a');
  });

  it.each(['right before', 'right after'])(
    'TR-26 lose nothing to one that leaves %s the release',
    async (when) => {
      const lock = await serviceAt().acquire(KEY);
      const controller = new AbortController();
      const leaving = serviceAt().acquire(KEY, { signal: controller.signal });
      const outcome = expect(leaving).rejects.toThrow('left');
      await eventually(async () => (await redis.zcard(QUEUE)) === 1);
      const line = await Waiter.line('a', 'b');
      const commands = await server.commandsSentDuring(async () => {
        const leave = (): void => {
          controller.abort(new Error('left'));
        };
        if (when === 'right before') leave();
        const releasing = lock.release();
        await nextTurn(); // the request is on its way
        leave();
        await releasing;
        await Promise.all(line.map((waiter) => waiter.ends()));
      });
      await outcome;
      expect(await grantedTo()).toEqual(['a', 'b']);
      expect(asks(commands)).toBeGreaterThanOrEqual(2);
      expect(asks(commands)).toBeLessThanOrEqual(when === 'right before' ? 2 : 4);
      expect(await expired()).toBe(0);
    },
  );

  it('TR-22 keep their order when all their subscribers are killed, and are called again', async () => {
    const lock = await serviceAt().acquire(KEY);
    const line = await Waiter.line('a', 'b', 'c', 'd');
    const before = await redis.zrange(QUEUE, '0', '-1', 'WITHSCORES');
    expect(await redis.client('KILL', 'TYPE', 'PUBSUB')).toBe(4);
    const channels = before.flatMap((member) => member.split(' ')[2] ?? []);
    await eventually(async () => {
      const counts = await redis.pubsub('NUMSUB', ...channels);
      return counts.filter((count) => count === 1).length === 4;
    });
    const since = performance.now();
    await lock.release();
    await Promise.all(line.map((waiter) => waiter.ends()));
    expect(performance.now() - since).toBeLessThan(SOON_MS);
    expect(await grantedTo()).toEqual(['a', 'b', 'c', 'd']);
    expect(await expired()).toBe(0);
  });

  it('TR-22 are all served when their subscribers are killed in the moment of the release', async () => {
    const lock = await serviceAt().acquire(KEY);
    const line = await Waiter.line('a', 'b', 'c', 'd');
    const since = performance.now();
    const [killed] = await Promise.all([redis.client('KILL', 'TYPE', 'PUBSUB'), lock.release()]);
    expect(killed).toBe(4);
    await Promise.all(line.map((waiter) => waiter.ends()));
    expect(performance.now() - since).toBeLessThan(SOON_MS);
    expect((await grantedTo()).sort()).toEqual(['a', 'b', 'c', 'd']);
  });

  it('have the lock of a holder that is killed once its lease is over, in their order', async () => {
    const ttl = 1_500;
    const holder = await Waiter.holding(ttl);
    const line = await Waiter.line('a', 'b', 'c');
    await holder.kill();
    const leftMs = await redis.pttl(`lock:${KEY}`);
    const since = performance.now();
    await Promise.all(line.map((waiter) => waiter.ends()));
    const tookMs = performance.now() - since;
    expect(tookMs).toBeGreaterThan(leftMs - 50);
    expect(tookMs).toBeLessThan(ttl + SOON_MS);
    expect(await grantedTo()).toEqual(['holder', 'a', 'b', 'c']);
    expect(await expired()).toBe(1);
  });

  it('have the lock of a holder that is frozen once its lease is over, and it does not disturb them', async () => {
    const ttl = 1_500;
    const holder = await Waiter.holding(ttl);
    const line = await Waiter.line('a', 'b');
    holder.freeze();
    await eventually(async () => (await grantedTo()).length === 3);
    holder.thaw();
    await Promise.all(line.map((waiter) => waiter.ends()));
    expect(await grantedTo()).toEqual(['holder', 'a', 'b']);
  });
});

/** Other software that locks as the Redis documentation tells: it polls, and stands in no line. */
class Stranger {
  readonly #token = randomUUID();

  tryLock(): Promise<unknown> {
    return redis.set(`lock:${KEY}`, this.#token, 'PX', LONG_TTL, 'NX');
  }

  unlock(): Promise<unknown> {
    const ifMine = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end`;
    return redis.eval(ifMine, 1, `lock:${KEY}`, this.#token);
  }
}

describe('other software that wants the same lock', () => {
  it('is noticed to have released within about a second by those in line', async () => {
    const stranger = new Stranger();
    expect(await stranger.tryLock()).toBe('OK');
    const line = await Waiter.line('a', 'b', 'c');
    await stranger.unlock();
    const since = performance.now();
    await eventually(async () => (await grantedTo()).length > 0);
    expect(performance.now() - since).toBeLessThan(2_500);
    await Promise.all(line.map((waiter) => waiter.ends()));
    expect(performance.now() - since).toBeLessThan(SOON_MS);
    expect(await grantedTo()).toEqual(['a', 'b', 'c']);
  });

  it('and three services exclude each other, and nobody starves, while the lock is free now and then', async () => {
    const ROUNDS = 20;
    let inside = 0;
    let overlaps = 0;
    const had = new Map<string, number>();
    const section = async (name: string): Promise<void> => {
      inside += 1;
      if (inside > 1) overlaps += 1;
      await sleep(3);
      had.set(name, (had.get(name) ?? 0) + 1);
      inside -= 1;
    };
    const isOver = (): boolean =>
      ['x', 'a', 'b', 'c'].every((name) => (had.get(name) ?? 0) >= ROUNDS);

    const stranger = new Stranger();
    const strangersTurns = async (): Promise<void> => {
      while (!isOver()) {
        if ((await stranger.tryLock()) === 'OK') {
          await section('x');
          expect(await stranger.unlock()).toBe(1);
          await sleep(50);
        } else await sleep(2);
      }
    };
    const turnsOf = async (name: string): Promise<void> => {
      const service = serviceAt();
      while (!isOver()) {
        await service.run(KEY, () => section(name));
        await sleep(Math.random() * 50);
      }
    };
    await Promise.all([strangersTurns(), ...['a', 'b', 'c'].map(turnsOf)]);
    expect(overlaps).toBe(0);
  }, 60_000);
});

describe('processes that want several keys', () => {
  it('of which others want one, end all: rounds of [a, b], [b, c] and [c, a] beside a, b and c', async () => {
    const ROUNDS = share(60, 300);
    const pairs = [
      ['a', 'b'],
      ['b', 'c'],
      ['c', 'a'],
    ] as const;
    const processes = pairs.map(([one, other]) =>
      start(SEVERAL_KEYS_SCRIPT, server.url, pairs.length, ROUNDS, one, other),
    );
    const had = await Promise.all(processes.map(({ output }) => output));
    expect(had.map(Number)).toEqual([2 * ROUNDS, 2 * ROUNDS, 2 * ROUNDS]);
    for (const key of ['a', 'b', 'c']) {
      const log = (await redis.lrange(`log:${key}`, '0', '-1')).map((entry) => entry.split(' '));
      expect(log).toHaveLength(3 * ROUNDS);
      expect(log.filter(([inside]) => inside !== '1')).toEqual([]);
      const fences = log.map(([, fence]) => Number(fence));
      expect(fences.filter((fence, at) => at > 0 && fence <= fences[at - 1]!)).toEqual([]);
      expect(await redis.exists(`lock:${key}`, `{lock:${key}}:queue`)).toBe(0);
    }
    expect(await expired()).toBe(0);
  }, 120_000);
});
