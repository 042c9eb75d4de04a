import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { LockService, type Lock } from 'nestjs-holdfast';
import type { AcquireOutcome, ReleaseOutcome } from '../../lib/store/lock-store.js';
import { newOwnerToken } from '../../lib/store/owner-token.js';
import type { LockStore } from '../../lib/store/lock-store.js';
import { tokenOf } from '../../lib/store/redis/scripts/script.js';
import { keyNames } from '../../lib/store/redis/scripts/key-names.js';
import { give, take } from '../../lib/store/redis/scripts/plain.js';
import { systemRuntime } from '../../lib/time/runtime.js';
import { cases } from '../support/cases.js';
import { shared } from '../support/encoded.js';
import { eventually } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';
import { Random } from '../techniques/faults/random.js';
import { LINE, openStore, request } from './open-store.js';

const KEEP_MS = 600_000;
const TTL_MS = 30_000;
const TOKEN = 'holdfast:mine';

let server: RedisServer;
let redis: Redis;

beforeAll(async () => {
  server = await RedisServer.start();
  redis = new Redis(server.url);
});

beforeEach(async () => {
  await redis.flushall();
});

afterEach(async () => {
  await redis.config('SET', 'maxmemory', '0');
});

afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const namesOf = keyNames('lock:');
const { main, fence, queue, holders } = namesOf('key');

/** What the server's clock shows, in us. */
async function serverUs(): Promise<number> {
  const [seconds = 0, micros = 0] = (await redis.time()).map(Number);
  return seconds * 1_000_000 + micros;
}

/** Every key with what it contains, and whether it has a TTL. */
async function everything(): Promise<readonly unknown[]> {
  const keys = (await redis.keys('*')).sort();
  return Promise.all(
    keys.map(async (key) => [key, await redis.dump(key), (await redis.pttl(key)) > 0]),
  );
}

/** One run of a script for the given keys: what it replies of each of them. */
async function taken(
  keys: readonly string[],
  { proposal = 0, token = TOKEN }: { readonly proposal?: number; readonly token?: string } = {},
): Promise<unknown> {
  const shares = keys.map((key) =>
    shared(take, { names: namesOf(key), token, ttlMs: TTL_MS, proposal, fenceKeepMs: KEEP_MS }),
  );
  const names = shares.flatMap((share) => share.keys);
  return redis.eval(take.lua, names.length, ...names, ...shares.flatMap(({ args }) => args));
}

async function given(...keys: readonly string[]): Promise<unknown> {
  const shares = keys.map((key) => shared(give, { names: namesOf(key), token: TOKEN }));
  const names = shares.flatMap((share) => share.keys);
  return redis.eval(give.lua, names.length, ...names, ...shares.flatMap(({ args }) => args));
}

/** The script was run, and nothing was plain, or the key is held, or it failed: nothing was written. */
async function isNotTaken(proposal = 0): Promise<unknown> {
  const before = await everything();
  const reply = await taken(['key'], { proposal }).catch((error: unknown) => error);
  expect(await everything()).toEqual(before);
  if (reply instanceof Error) return reply.message;
  return reply === 0 ? 'not plain' : reply;
}

/** The key is taken. Returns the clock. */
async function isTaken(proposal = 0): Promise<number> {
  const since = await serverUs();
  const clock = Number(await taken(['key'], { proposal }));
  expect(clock).toBeGreaterThanOrEqual(since);
  expect(clock).toBeLessThanOrEqual(await serverUs());
  expect(await redis.get(main)).toBe(TOKEN);
  expect(await redis.get(fence)).toBe(String(tokenOf(clock, proposal)));
  const leftMs = await redis.pttl(main);
  expect(leftMs).toBeGreaterThan(TTL_MS - 10_000);
  expect(leftMs).toBeLessThanOrEqual(TTL_MS);
  const keptMs = await redis.pttl(fence);
  expect(keptMs).toBeGreaterThan(TTL_MS + KEEP_MS - 10_000);
  expect(keptMs).toBeLessThanOrEqual(TTL_MS + KEEP_MS + (proposal === 0 ? 0 : 1_000));
  return clock;
}

describe('a key is taken plainly', () => {
  it('if it is free and was never granted', async () => {
    await isTaken();
  });

  it('if its fence is behind the clock', async () => {
    const before = (await serverUs()) - 1_000_000;
    await redis.set(fence, before);
    expect(await isTaken()).toBeGreaterThan(before);
  });

  it('if its holder has expired or released it', async () => {
    const first = await isTaken();
    await redis.del(main);
    const second = await isTaken();
    expect(second).toBeGreaterThan(first);
    expect(await given('key')).toBe(1);
    expect(await isTaken()).toBeGreaterThan(second);
  });

  it('with the proposed token, if that is ahead of the clock and of the fence', async () => {
    const proposal = (await serverUs()) + 500_000;
    await redis.set(fence, proposal - 1);
    await isTaken(proposal);
    expect(await redis.get(fence)).toBe(String(proposal));
  });

  it.each([
    ['behind the clock', -1_000],
    ['more than a second ahead of it', 60_000_000],
  ])('with the clock as its token, if the proposed one is %s', async (_, aheadUs) => {
    const clock = await isTaken((await serverUs()) + aheadUs);
    expect(await redis.get(fence)).toBe(String(clock));
  });

  it('among several: the reply has the clock of those that are taken, and the holder or 0 of the others', async () => {
    await redis.set(namesOf('b').main, 'of another', 'PX', TTL_MS);
    await redis.zadd(namesOf('c').queue, 1, 'a waiter');
    const before = await serverUs();
    const replies = (await taken(['a', 'b', 'c', 'd', 'a'])) as unknown[];
    const [a, b, c, d, again] = replies;
    expect([b, c, again]).toEqual([[expect.any(Number), 'of'], 0, 0]);
    expect(a).toBe(d);
    expect(Number(a)).toBeGreaterThanOrEqual(before);
    expect(await redis.mget(['a', 'b', 'c', 'd'].map((key) => namesOf(key).main))).toEqual([
      ...[TOKEN, 'of another', null, TOKEN],
    ]);
    expect(await redis.mget(['a', 'b', 'c', 'd'].map((key) => namesOf(key).fence))).toEqual([
      ...[String(a), null, null, String(d)],
    ]);
  });
});

it('two keys are taken and released plainly: the reply is a list, as of more', async () => {
  expect(await taken(['a', 'b'])).toEqual([expect.any(String), expect.any(String)]);
  expect(await given('a', 'b')).toEqual([1, 1]);
});

describe('a key is not taken plainly, and nothing is written', () => {
  it.each<[string, () => Promise<unknown>]>([
    ['it is held by the same token', () => redis.set(main, TOKEN, 'PX', TTL_MS)],
    ['it has a marker without holders', () => redis.set(main, 'holdfast::shared 5', 'PX', TTL_MS)],
    ['callers wait for it', () => redis.zadd(queue, 1, 'a waiter')],
    ['others hold it together', () => redis.zadd(holders, 9e15, 'holdfast:x:shared')],
    ['its line is of a foreign type', () => redis.hset(queue, 'no', 'line')],
    ['its holders are of a foreign type', () => redis.set(holders, 'no set')],
    ['it is of a foreign type', () => redis.hset(main, 'no', 'lock')],
    ['its fence is of a foreign type', () => redis.hset(fence, 'no', 'token')],
    ['its fence is ahead of the clock', async () => redis.set(fence, (await serverUs()) + 1e8)],
  ])('if %s', async (_, prepare) => {
    await prepare();
    expect(await isNotTaken()).toBe('not plain');
  });

  it.each([
    ['a lock', 'holdfast:other', 'holdfast:other'],
    ['a lock of other software', 'foreign', 'foreign'],
    ['a text of several words', 'of another one', 'of'],
    ['an empty text', '', ''],
  ])('if it is held, by %s: the reply is for how long, and by whom', async (_, value, holder) => {
    await redis.set(main, value, 'PX', TTL_MS);
    const [leftMs, ...others] = (await isNotTaken()) as [number, ...unknown[]];
    expect(leftMs).toBeGreaterThan(TTL_MS - 10_000);
    expect(leftMs).toBeLessThanOrEqual(TTL_MS);
    expect(others).toEqual([holder]);
    await redis.persist(main);
    expect(await isNotTaken()).toEqual([-1, holder]);
    await redis.set(fence, (await serverUs()) + 1e8);
    expect(await isNotTaken()).toEqual([-1, holder]);
  });

  it.each([
    ...['', '5', '999999999999999', '10000000000000000', 'not a token', 'ABCDEFGHIJKLMNOP'],
    ...[
      '-100000000000000',
      '0x10000000000000',
      '1000000000000.00',
      '1.00000000000e15',
      ' 100000000000000',
    ],
    ...[
      '100000000000000 ',
      '1000000000000000\n',
      '+100000000000000',
      '0x1p-10000000000',
      '             nan',
    ],
    ...['１０００００'.slice(0, 5) + '0', '100000000000000\0'],
  ])('if its fence is no number of 16 digits: %j', async (stored) => {
    await redis.set(fence, stored);
    expect(await isNotTaken()).toBe('not plain');
    expect(await isNotTaken((await serverUs()) + 500_000)).toBe('not plain');
  });

  it('if its fence is at or above the proposed token', async () => {
    const proposal = (await serverUs()) + 500_000;
    for (const aheadUs of [0, 1, 100_000]) {
      await redis.set(fence, proposal + aheadUs);
      expect(await isNotTaken(proposal)).toBe('not plain');
    }
  });

  it('if its fence is ahead of the clock, and the proposed token is not accepted', async () => {
    const now = await serverUs();
    await redis.set(fence, now + 30_000_000);
    expect(await isNotTaken(now + 60_000_000)).toBe('not plain');
    expect(await isNotTaken(now - 1)).toBe('not plain');
  });

  it('but with an error, if memory is full, whether it is free or held', async () => {
    await redis.config('SET', 'maxmemory', '1');
    expect(await isNotTaken()).toMatch(/\bOOM\b/);
    await redis.config('SET', 'maxmemory', '0');
    await isTaken();
    await redis.config('SET', 'maxmemory', '1');
    expect(await isNotTaken()).toMatch(/\bOOM\b/);
  });
});

describe('a key is released plainly', () => {
  it('if it has the token and nobody waits: its fence stays, also when memory is full', async () => {
    const clock = await isTaken();
    const before = await redis.pttl(fence);
    await redis.config('SET', 'maxmemory', '1');
    expect(await given('key')).toBe(1);
    expect(await redis.exists(main)).toBe(0);
    expect(await redis.get(fence)).toBe(String(clock));
    expect(await redis.pttl(fence)).toBeLessThanOrEqual(before);
    expect(await given('key')).toBe(0);
  });

  it.each<[string, () => Promise<unknown>]>([
    ['it is free', () => redis.del(main)],
    ['it has another token', () => redis.set(main, 'holdfast:other', 'PX', TTL_MS)],
    ['it became of a foreign type', () => redis.multi().del(main).hset(main, 'no', 'lock').exec()],
    ['callers wait for it', () => redis.zadd(queue, 1, 'a waiter')],
    ['its line is of a foreign type', () => redis.hset(queue, 'no', 'line')],
  ])('but not if %s: then nothing is written', async (_, prepare) => {
    await isTaken();
    await prepare();
    const before = await everything();
    expect(await given('key')).toBe(0);
    expect(await everything()).toEqual(before);
  });

  it('among several: the reply says of each whether it was', async () => {
    for (const key of ['a', 'b', 'c']) await taken([key]);
    await redis.zadd(namesOf('b').queue, 1, 'a waiter');
    expect(await given('a', 'b', 'c', 'd', 'a')).toEqual([1, 0, 1, 0, 0]);
    expect(await redis.mget(['a', 'b', 'c'].map((key) => namesOf(key).main))).toEqual([
      ...[null, TOKEN, null],
    ]);
  });
});

/** Requests that share a call, and what is wrong with the key of each. */
interface Plan {
  readonly requests: readonly { readonly key: string; readonly token: string }[];
  /** Of each key, before it is acquired. */
  readonly troubles: readonly (readonly (string | number)[])[];
  /** Of each key, before it is released. */
  readonly laterTroubles: readonly (readonly (string | number)[])[];
  readonly memory: 'free' | 'full';
  readonly laterMemory: 'free' | 'full';
}

/** The Redis user may not use this key. */
const FORBIDDEN = 'forbidden';

function troubleOf(random: Random, key: string, nowUs: number): readonly (string | number)[] {
  const names = namesOf(key);
  return random.pick<readonly (string | number)[]>([
    ['PING'],
    ['PING'],
    ['PING'],
    ['SET', names.main, 'holdfast:other', 'PX', 50_000],
    ['SET', names.main, 'foreign'],
    ['HSET', names.main, 'no', 'lock'],
    ['HSET', names.fence, 'no', 'token'],
    ['SET', names.fence, random.pick(['not a token', 'ABCDEFGHIJKLMNOP', '-5', '7'])],
    ['SET', names.fence, nowUs + random.pick([-5_000_000, 60_000_000])],
    ['HSET', names.queue, 'no', 'line'],
    ['ZADD', names.queue, 1, 'holdfast:nobody 1000 nowhere'],
    ['SET', names.holders, 'no holders'],
    ['ZADD', names.holders, 9e15, 'holdfast:x:shared'],
    ['DEL', names.main],
  ]);
}

function planOf(random: Random, nowUs: number): Plan {
  const keys = Array.from({ length: random.between(2, 12) }, (_, index) => `ok:${String(index)}`);
  const trouble = (key: string): readonly (string | number)[] => troubleOf(random, key, nowUs);
  const wanted = random.sample([
    ...keys,
    ...(random.chance(0.4) ? [FORBIDDEN] : []),
    ...(random.chance(0.3) ? [random.pick(keys)] : []),
  ]);
  const isTroubled = (): boolean => random.chance(0.5);
  return {
    requests: wanted.map((key) => ({ key, token: newOwnerToken(systemRuntime) })),
    troubles: keys.filter(isTroubled).map(trouble),
    laterTroubles: keys.filter(isTroubled).map(trouble),
    memory: random.chance(0.15) ? 'full' : 'free',
    laterMemory: random.chance(0.15) ? 'full' : 'free',
  };
}

/** What callers see of it, without what differs from one run to the next. */
function seen(outcome: AcquireOutcome | ReleaseOutcome): unknown {
  if (outcome.status === 'granted') return outcome.status;
  if (outcome.status === 'held') {
    const { key, holder, remainingMs, ticket, otherLimit } = outcome;
    // What ends at a certain time, centuries from now, has no round number of ms left.
    const roundedMs = Math.round(Math.min(remainingMs, 1_000_000) / 25_000) * 25_000;
    return { status: 'held', key, holder, roundedMs, ticket, otherLimit };
  }
  if (outcome.status !== 'unavailable') return outcome;
  const { nodes, transient } = outcome;
  const problems = nodes.map(({ kind, message }) => ({
    kind,
    // The script and the line in it.
    message: message.replace(/ ?script: [0-9a-f]{40}.*$/, '').replace(/f_[0-9a-f]{40}/g, ''),
  }));
  return { status: 'unavailable', transient, problems };
}

describe('requests that share a call, of which some fail, each in its own way', () => {
  const SEED = Number(process.env.PLAIN_SEED ?? Math.floor(Math.random() * 1e9));
  const ROUNDS = cases(60, 2_000);

  /** One database is asked for all at once, the other one for one after the other. */
  const WORLDS = ['together', 'alone'] as const;
  let stores: Readonly<Record<(typeof WORLDS)[number], LockStore>>;
  let clients: Readonly<Record<(typeof WORLDS)[number], Redis>>;

  beforeAll(async () => {
    const patterns = ['~lock:ok:*', '~{lock:ok:*', '~*<trial:*'];
    await redis.call('ACL', 'SETUSER', 'some', 'on', '>secret', ...patterns, '&*', '+@all');
    const urlOf = (database: number): string =>
      `redis://some:secret@127.0.0.1:${String(server.port)}/${String(database)}`;
    const [together, alone] = await Promise.all(
      [1, 2].map(async (database) => (await openStore({ redis: urlOf(database) })).store),
    );
    stores = { together: together!, alone: alone! };
    const clientOf = (db: number): Redis => new Redis({ port: server.port, db });
    clients = { together: clientOf(1), alone: clientOf(2) };
  });

  afterAll(async () => {
    for (const world of WORLDS) {
      await stores[world].close();
      clients[world].disconnect();
    }
  });

  async function everywhere(commands: Plan['troubles']): Promise<void> {
    for (const world of WORLDS)
      for (const [name, ...args] of commands)
        // A key that already is of another type stays so.
        await clients[world].call(String(name), ...args).catch(() => undefined);
  }

  /** What is stored, without the readings of the clock. */
  async function stored(client: Redis): Promise<unknown> {
    const keys = (await client.keys('*')).filter((key) => !key.includes('<trial:')).sort();
    return Promise.all(
      keys.map(async (key) => {
        const type = await client.type(key);
        const value = type === 'string' ? await client.get(key) : type;
        const hasTtl = (await client.pttl(key)) > 0;
        const shown = value
          ?.replace(/^\d{16}$/, 'a reading of the clock')
          // A whole release raises it by one, a plain one does not.
          .replace(/^-?\d$/, 'a small number');
        return [key, shown, hasTtl];
      }),
    );
  }

  /** The first of them goes out alone: it is of a key that nobody wants. */
  async function outcomesOf<Outcome extends AcquireOutcome | ReleaseOutcome>(
    ask: (store: LockStore, index: number) => Promise<Outcome>,
    count: number,
  ): Promise<readonly Outcome[]> {
    const indexes = Array.from({ length: count }, (_, index) => index);
    const other = request('ok:first');
    const first = stores.together.acquire(other);
    const together = await Promise.all(indexes.map((index) => ask(stores.together, index)));
    await first;
    await stores.alone.acquire(other);
    const alone: Outcome[] = [];
    for (const index of indexes) alone.push(await ask(stores.alone, index));
    expect(together.map(seen)).toEqual(alone.map(seen));
    expect(await stored(clients.together)).toEqual(await stored(clients.alone));
    return alone;
  }

  it(
    `have the outcomes that they have alone, and leave the same keys: seed ${String(SEED)}`,
    async () => {
      for (let round = 0; round < ROUNDS; round += 1) {
        await redis.flushall();
        const plan = planOf(new Random(SEED + round), await serverUs());
        const leases = plan.requests.map(({ key, token }) => request(key, { token }));
        try {
          await everywhere(plan.troubles);
          await redis.config('SET', 'maxmemory', plan.memory === 'full' ? '1' : '0');
          const acquired = await outcomesOf(
            (store, index) => store.acquire(leases[index]!),
            leases.length,
          );
          await redis.config('SET', 'maxmemory', '0');
          await everywhere(plan.laterTroubles);
          await redis.config('SET', 'maxmemory', plan.laterMemory === 'full' ? '1' : '0');
          const held = leases.filter((_, index) => acquired[index]?.status !== 'held');
          await outcomesOf(
            (store, index) => store.release({ ...held[index]!, isPlain: true }),
            held.length,
          );
        } catch (error) {
          throw new Error(`PLAIN_SEED=${String(SEED + round)} ${JSON.stringify(plan)}`, {
            cause: error,
          });
        } finally {
          await redis.config('SET', 'maxmemory', '0');
        }
      }
    },
    cases(120_000, 600_000),
  );

  it('are released once: one whose key became of another type takes no release of the others back', async () => {
    const { together: store } = stores;
    const leases = ['a', 'b', 'c', 'd'].map((key) => request(`ok:${key}`));
    for (const lease of leases) await store.acquire(lease);
    await clients.together.del('lock:ok:d');
    await clients.together.hset('lock:ok:d', 'no', 'lock');
    const released = leases.map((lease) => store.release({ ...lease, isPlain: true }));
    expect(await Promise.all(released)).toEqual([
      ...[{ status: 'released' }, { status: 'released' }, { status: 'released' }],
      { status: 'not-held' },
    ]);
  });
});

describe('turns of one process under a plain lease', () => {
  const opened: LockService[] = [];

  afterEach(async () => {
    await Promise.all(opened.splice(0).map((each) => each.shutdown(0)));
  });

  function newService(): LockService {
    const service = new LockService({
      ...{ redis: server.url, ttl: '600ms', wait: '20s', handoff: { tenure: '10s' } },
    });
    opened.push(service);
    return service;
  }

  const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

  const fenceNow = async (): Promise<number> => Number(await redis.get(fence));

  /** Has so many callers hold the key one after the other. The last one keeps it. */
  async function takeTurns(
    locks: LockService,
    count: number,
    work: (turn: number) => Promise<unknown> = () => pause(1),
  ): Promise<{ readonly tokens: readonly number[]; readonly last: Lock }> {
    const waiting = Array.from({ length: count }, () => locks.acquire('key'));
    const tokens: number[] = [];
    for (const [index, acquiring] of waiting.entries()) {
      const lock = await acquiring;
      tokens.push(lock.fencingToken);
      await work(index + 1);
      if (index === count - 1) return { tokens, last: lock };
      await lock.release();
    }
    throw new Error('no turn');
  }

  it('have the token of the grant and their number, and the release leaves the fence above all', async () => {
    const { tokens, last } = await takeTurns(newService(), 20);
    const [first = NaN] = tokens;
    expect(tokens).toEqual(tokens.map((_, index) => first + index));
    expect(await fenceNow()).toBe(first);
    expect(await last.release()).toBe(true);
    expect(await redis.exists(main)).toBe(0);
    expect(await fenceNow()).toBe(first + 20);
    const next = await newService().acquire('key');
    expect(next.fencingToken).toBeGreaterThan(first + 20);
  });

  it('leave the fence as it is where there is one alone', async () => {
    const lock = await newService().acquire('key');
    expect(await fenceNow()).toBe(lock.fencingToken);
    await lock.release();
    expect(await fenceNow()).toBe(lock.fencingToken);
  });

  it('raise the fence with each renewal', async () => {
    const { tokens, last } = await takeTurns(newService(), 3);
    const [first = NaN] = tokens;
    expect(await fenceNow()).toBe(first);
    await eventually(async () => (await fenceNow()) === first + 2);
    expect(last.isHeld).toBe(true);
    expect(await redis.pttl(fence)).toBeGreaterThan(await redis.pttl(main));
  });

  it('have smaller tokens than the next grant, even if their process dies between them', async () => {
    const service = newService();
    for (let round = 0; round < 20; round += 1) {
      const { tokens, last } = await takeTurns(service, 12, () => pause(0));
      // As it expires without its process, which renewed nothing.
      await redis.del(main);
      const outcome = await taken(['key'], { token: newOwnerToken(systemRuntime) });
      expect(Number(outcome)).toBeGreaterThan(Math.max(...tokens));
      await redis.del(main);
      await last.release();
    }
  });
});

describe('after a plain release', () => {
  it('the next token is larger, whoever asks, and in which way', async () => {
    const { store } = await openStore({ redis: server.url });
    const guarded = (
      await openStore({ redis: server.url, restartGuard: { maxTtlMs: 60_000, bootstrap: true } })
    ).store;
    await store.listen(() => undefined);
    let last = 0;
    for (let round = 0; round < 60; round += 1) {
      const lease = request('key', round % 3 === 1 ? { line: LINE } : {});
      const outcome = await (round % 3 === 2 ? guarded : store).acquire(lease);
      expect(outcome).toMatchObject({ status: 'granted' });
      if (outcome.status !== 'granted') break;
      expect(outcome.fencingToken).toBeGreaterThan(last);
      last = outcome.fencingToken;
      expect(await store.release({ ...lease, isPlain: true }, last)).toEqual({
        status: 'released',
      });
      expect(await redis.get(fence)).toBe(String(last));
    }
    await store.close();
    await guarded.close();
  });
});
