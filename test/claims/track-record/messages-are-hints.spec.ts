import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { LockService, type Lock } from 'nestjs-holdfast';
import { LockAdmin } from 'nestjs-holdfast/admin';
import { ChildScript } from '../../support/child-script.js';
import { eventually } from '../../support/eventually.js';
import { watchHandles } from '../../support/no-leaks.js';
import { RedisServer } from '../../support/redis-server.js';
import { watchRejections } from '../../support/scripted-service.js';
import { share } from '../../support/soak.js';
import { FORGED_TOKENS, Forger } from './forger.js';
import { CallingProcess } from './several-keys-stage.js';

const LIMIT_MS = 120_000;
const TTL_MS = 30_000;

/** What was sent has arrived by then, and what it causes has happened. */
const ARRIVED_MS = 40;

/** By then another process has sent hundreds of requests. */
const SENT_MS = 300;

const handles = watchHandles();
const rejections = watchRejections();
const services: LockService[] = [];
let server: RedisServer;
let redis: Redis;

async function newService(): Promise<LockService> {
  const service = new LockService({ redis: server.url, ttl: TTL_MS });
  services.push(service);
  await service.open();
  return service;
}

const newServices = (count: number): Promise<readonly LockService[]> =>
  Promise.all(Array.from({ length: count }, newService));

const release = (lock: Lock): Promise<boolean> => lock.release();

/** In µs, as fencing tokens are. */
async function serverTime(): Promise<number> {
  const [seconds, us] = await redis.time();
  return Number(seconds) * 1_000_000 + Number(us);
}

beforeAll(async () => {
  Logger.overrideLogger(false);
  server = await RedisServer.start();
  redis = new Redis(server.url);
});

beforeEach(() => redis.flushall());

afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.shutdown(0)));
}, LIMIT_MS);

afterAll(async () => {
  redis.disconnect();
  await server.stop();
  await handles.expectNoneOpen();
  await rejections.expectNone();
});

describe('a client that may only publish and subscribe', () => {
  const ROUNDS = 20;
  let forger: Forger;

  beforeEach(async () => {
    forger = await Forger.start(server);
  });

  afterEach(() => {
    forger.stop();
  });

  const keysOf = (rounds: number): readonly string[] =>
    Array.from({ length: rounds }, (_, round) => `key-${String(round)}`);

  /** One holds the key, by a call that others could see, and another one waits for it. */
  async function holderAndWaiter(key: string, [first, one, other]: readonly LockService[]) {
    const lock = await first!.acquire(key);
    let granted = 0;
    const waiters = [one!, other!];
    const waiting = waiters.map(
      (service) =>
        new Promise<void>((resolve) => {
          const stop = service.on('waiting', () => {
            stop();
            resolve();
          });
        }),
    );
    const calls = waiters.map((service) =>
      service.acquire(key, { wait: '20s' }).then((lock) => {
        granted += 1;
        return lock;
      }),
    );
    await Promise.all(waiting);
    await eventually(async () => (await redis.zcard(`{lock:${key}}:queue`)) === waiters.length);
    await sleep(ARRIVED_MS);
    const seen = forger.seen.length;
    await lock.release();
    const holder = await Promise.race(calls);
    await eventually(() => forger.seen.length > seen);
    await sleep(ARRIVED_MS);
    return {
      holder,
      grantedTo: () => granted,
      /** The lock of the one that waits. */
      next: async (): Promise<Lock> => {
        const locks = await Promise.all(calls);
        return locks.find((lock) => lock !== holder)!;
      },
    };
  }

  it(
    'HF-50 never makes a second holder, and chooses no fencing token',
    async () => {
      const [three, keys] = [await newServices(3), keysOf(ROUNDS)];
      const second: string[] = [];
      const tokens: string[] = [];
      for (const key of keys) {
        const { holder, grantedTo, next } = await holderAndWaiter(key, three);
        const sent = await forger.forge({ key, keys, numbers: FORGED_TOKENS });
        expect(sent).toBeGreaterThan(0);
        await sleep(ARRIVED_MS);
        if (grantedTo() > 1) second.push(key);
        await holder.release();
        const lock = await next();
        const now = await serverTime();
        if (lock.fencingToken <= holder.fencingToken || lock.fencingToken > now + 1_000_000)
          tokens.push(`${key}: ${String(holder.fencingToken)}, then ${String(lock.fencingToken)}`);
        await lock.release();
        const after = await three[0]!.acquire(key);
        if (after.fencingToken > now + 1_000_000)
          tokens.push(`${key}: ${String(after.fencingToken)}`);
        await after.release();
      }
      expect({ second, tokens }).toEqual({ second: [], tokens: [] });
    },
    LIMIT_MS,
  );

  it(
    'HF-50 ends no lock: an operator has released another one, and the message is varied',
    async () => {
      const [three, keys] = [await newServices(3), keysOf(ROUNDS / 2)];
      const [operator = new LockService({})] = await newServices(1);
      const admin = new LockAdmin(operator);
      const ended: string[] = [];
      for (const key of keys) {
        const { holder, next } = await holderAndWaiter(key, three);
        const released = await three[0]!.acquire(`${key}:other`);
        await admin.release(await admin.describe(`${key}:other`), {
          by: 'operator',
          reason: 'stuck',
        });
        await eventually(() => released.signal.aborted);
        await forger.forge({
          key,
          keys: keys.flatMap((each) => [each, `${each}:other`]),
          numbers: [holder.fencingToken],
        });
        await sleep(ARRIVED_MS);
        const isHeld = holder.isHeld && !holder.signal.aborted;
        const extended = await holder.extend().then(
          () => true,
          () => false,
        );
        const ends = await Promise.allSettled([holder.release(), next().then(release)]);
        if (!isHeld || !extended || ends.some(({ status }) => status === 'rejected'))
          ended.push(key);
      }
      expect(ended).toEqual([]);
    },
    LIMIT_MS,
  );

  it('HF-50 sees no owner token in any message', async () => {
    const [one, two, three] = (await newServices(3)) as [LockService, LockService, LockService];
    const admin = new LockAdmin(one);
    const owners = new Set<string>();
    /** What proves in Redis that somebody holds it. */
    const note = async (key: string): Promise<void> => {
      const [value, holders] = await Promise.all([
        redis.get(`lock:${key}`),
        redis.zrange(`{lock:${key}}:holders`, '0', '-1'),
      ]);
      for (const text of [value ?? '', ...holders]) {
        const [, secret] = /^holdfast:([^:*~]{8,})/.exec(text) ?? [];
        if (secret !== undefined) owners.add(secret);
      }
    };
    const contend = async (keys: readonly string[], options: object): Promise<void> => {
      const rounds = [one, two, three].flatMap((service) =>
        [1, 2, 3].map(async () => {
          for (let round = 0; round < 5; round += 1)
            await service.run(keys, { wait: '20s', ...options }, async () => {
              for (const key of keys) await note(key);
            });
        }),
      );
      await Promise.all(rounds);
    };
    await Promise.all([
      contend(['exclusive'], {}),
      contend(['shared'], { mode: 'shared' }),
      contend(['mixed'], {}),
      contend(['mixed'], { mode: 'shared' }),
      contend(['limited'], { limit: 2 }),
      contend(['a', 'b', 'c'], {}),
      contend(['b'], {}),
    ]);
    const stuck = await two.acquire('stuck');
    await note('stuck');
    const waiting = three.acquire('stuck', { wait: '20s' });
    await sleep(ARRIVED_MS);
    await admin.release(await admin.describe('stuck'), { by: 'operator', reason: 'stuck' });
    const lock = await waiting;
    await note('stuck');
    await lock.release();
    expect(stuck.isHeld).toBe(false);
    await sleep(ARRIVED_MS);
    expect(owners.size).toBeGreaterThan(20);
    expect(forger.seen.length).toBeGreaterThan(20);
    const leaks = forger.seen.filter(({ text }) =>
      [...owners].some((owner) => text.includes(owner)),
    );
    expect(leaks.map(({ text }) => text).slice(0, 5)).toEqual([]);
  });
});

describe('a section that begins when its caller is called', () => {
  it(
    'HF-50 keeps its lock through more than a second of synchronous work',
    async () => {
      const BLOCKED_MS = 1_300;
      const [holder, waiter] = (await newServices(2)) as [LockService, LockService];
      const child = new ChildScript(new URL('./several-keys-calls.ts', import.meta.url), [
        server.url,
        JSON.stringify({ 'one Redis': server.url }),
      ]);
      const process = new CallingProcess(child, redis);
      try {
        const outcomes: string[] = [];
        for (let round = 0; round < 3; round += 1) {
          const lock = await holder.acquire('key');
          const section = waiter.run('key', { wait: '20s' }, async ({ signal }) => {
            for (const until = performance.now() + BLOCKED_MS; performance.now() < until;);
            await sleep(2 * ARRIVED_MS);
            const others = (await process.ends(['key'])).length - round;
            return signal.aborted || others > 0 ? 'lost' : 'kept';
          });
          await sleep(ARRIVED_MS);
          await process.call('one Redis', ['key']);
          await lock.release();
          outcomes.push(await section.catch((error: unknown) => (error as Error).name));
          await eventually(async () => (await process.ends(['key'])).length === round + 1);
        }
        expect(outcomes).toEqual(['kept', 'kept', 'kept']);
      } finally {
        await process.kill();
      }
    },
    LIMIT_MS,
  );
});

describe('many callers who give up in the moment of a release', () => {
  it(
    'HF-50 leave no fencing token that is larger than the first one after all data were lost',
    async () => {
      const ROUNDS = share(10, 100);
      const script = new URL('./giving-up.ts', import.meta.url);
      const crowd = new ChildScript(script, [server.url, '100', '200']);
      const [holder, last] = (await newServices(2)) as [LockService, LockService];
      // Its messages must not be lost with the data.
      const orders = new Redis(server.url, { db: 1 });
      const told = async (): Promise<string> => (await orders.blpop('crowd', 60))?.[1] ?? 'nothing';
      const smaller: string[] = [];
      try {
        for (let round = 0; round < ROUNDS; round += 1) {
          const lock = await holder.acquire('key');
          await orders.rpush('rounds', 'key');
          expect(await told()).toBe('waiting');
          const patient = last.acquire('key', { wait: '20s' });
          await sleep(ARRIVED_MS);
          // The server finds all of these requests at once, however busy the machine is.
          server.freeze();
          const releasing = lock.release();
          await sleep(1);
          process.kill(crowd.pid, 'SIGUSR2');
          await sleep(SENT_MS);
          server.thaw();
          await releasing;
          const served = await patient;
          await served.release();
          await redis.flushdb();
          const next = await holder.acquire('key', { wait: '20s' });
          const granted = JSON.parse(await told()) as number[];
          const largest = Math.max(lock.fencingToken, served.fencingToken, ...granted);
          if (next.fencingToken <= largest)
            smaller.push(`round ${String(round)}: by ${String(largest - next.fencingToken)}`);
          await next.release();
        }
      } finally {
        await crowd.kill();
        orders.disconnect();
      }
      expect(smaller).toEqual([]);
    },
    LIMIT_MS,
  );
});
