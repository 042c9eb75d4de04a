import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Cluster, Redis } from 'ioredis';
import { LockService, type AcquireOptions, type LockModuleOptions } from 'nestjs-holdfast';
import type { AcquireOutcome, Held, LeaseRequest } from '../../lib/store/lock-store.js';
import { newOwnerToken, tailOf, type HoldMode } from '../../lib/store/owner-token.js';
import { systemRuntime } from '../../lib/time/runtime.js';
import type { LockStore } from '../../lib/store/lock-store.js';
import { keyNames } from '../../lib/store/redis/scripts/key-names.js';
import { releaseScript } from '../../lib/store/redis/scripts/release.js';
import { encoded } from '../support/encoded.js';
import { eventually } from '../support/eventually.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisServer } from '../support/redis-server.js';
import { LINE, openStore, request, endHolders, heldMs } from './open-store.js';

const KEEP_MS = 600_000;

let server: RedisServer;
let redis: Redis;
const closings: (() => unknown)[] = [];

beforeAll(async () => {
  Logger.overrideLogger(false); // connections are cut here on purpose
  server = await RedisServer.start();
  redis = new Redis(server.url);
});

beforeEach(async () => {
  await redis.flushall();
});

afterEach(async () => {
  await redis.config('SET', 'maxmemory', '0');
  for (const close of closings.splice(0).reverse()) await close();
});

afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const holderOf = (key: string): Promise<string | null> => redis.get(`lock:${key}`);

/** Who stands in line, by token. */
const lineAt = async (key: string): Promise<string[]> =>
  (await redis.zrange(`{lock:${key}}:queue`, '0', '-1')).map(
    (member) => member.split(' ')[0] ?? '',
  );

/** Who is the first in line. */
const memberAt = async (key: string): Promise<string> =>
  (await redis.zrange(`{lock:${key}}:queue`, '0', '0'))[0] ?? '';

/** What the server's clock shows, in µs. */
async function serverUs(): Promise<number> {
  const [seconds, micros] = (await redis.time()) as unknown as [string, string];
  return Number(seconds) * 1_000_000 + Number(micros);
}

/** A place in line, and when it should look again; as the store says it. */
interface Told {
  readonly key: string | undefined;
  readonly to: string | undefined;
  readonly inMs: number | undefined;
}

/** A process that takes part: a store of its own, which listens. */
class Participant {
  readonly told: Told[] = [];
  ticket: number | undefined;

  private constructor(
    readonly store: LockStore,
    readonly token: string,
  ) {}

  static async open(
    redis: Parameters<typeof openStore>[0]['redis'],
    mode: HoldMode = 'exclusive',
  ): Promise<Participant> {
    const { store } = await openStore({ redis });
    const participant = new Participant(store, newOwnerToken(systemRuntime, { mode }));
    closings.push(() => store.close());
    const ear = await store.listen((key, call) => {
      participant.told.push({ key, to: call?.to, inMs: call?.inMs });
    });
    expect(ear).toBe('listening');
    return participant;
  }

  /** Asks in line, as the same caller with the same place each time. */
  async ask(keys: string | readonly string[], ttlMs = 30_000): Promise<AcquireOutcome> {
    const line = { id: 'line', ttlMs, ticket: this.ticket };
    const outcome = await this.store.acquire({ ...this.lease(keys, ttlMs), line });
    if (outcome.status === 'held') this.ticket = outcome.ticket;
    return outcome;
  }

  lease(keys: string | readonly string[], ttlMs = 30_000): LeaseRequest {
    return request(keys, { token: this.token, ttlMs });
  }

  leave(keys: string | readonly string[]): Promise<void> {
    return this.store.leave(this.lease(keys), { id: 'line', ttlMs: 30_000 });
  }

  hasBeenTold(key: string, inMs: number): Promise<unknown> {
    return eventually(() =>
      this.told.some(
        (call) => call.key === key && call.to === tailOf(this.token) && call.inMs === inMs,
      ),
    );
  }
}

const participants = (count: number): Promise<Participant[]> =>
  Promise.all(Array.from({ length: count }, () => Participant.open(server.url)));

/** Somebody who holds the key, and others who wait for it in this order. */
async function holderAndLine(key: string, count: number): Promise<[Participant, ...Participant[]]> {
  const [holder, ...line] = await participants(count + 1);
  if (holder === undefined) throw new Error('nobody');
  expect(await holder.ask(key)).toMatchObject({ status: 'granted' });
  for (const waiter of line) expect(await waiter.ask(key)).toMatchObject({ status: 'held' });
  return [holder, ...line];
}

const asHeld = (outcome: AcquireOutcome): Held => {
  if (outcome.status !== 'held') throw new Error(`not held: ${JSON.stringify(outcome)}`);
  return outcome;
};

function serviceAt(options: Partial<LockModuleOptions> = {}): LockService {
  const service = new LockService({ redis: server.url, ttl: '1m', ...options });
  closings.push(() => service.shutdown(0));
  return service;
}

/** Members of processes that do not exist, or do not listen. */
const dead = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `dead-${String(index)} 1000 nobody-${String(index)}`);

/** Puts members in line, ahead of all who came with a ticket of today. */
const putInFront = (key: string, members: readonly string[]): Promise<unknown> =>
  redis.zadd(`{lock:${key}}:queue`, ...members.flatMap((member, place) => [place, member]));

/** A process that listens and does nothing else, as one that is frozen. */
async function frozen(channel: string): Promise<string[]> {
  const ear = new Redis(server.url);
  closings.push(() => {
    ear.disconnect();
  });
  const heard: string[] = [];
  ear.on('message', (_channel: string, message: string) => heard.push(message));
  await ear.subscribe(channel);
  return heard;
}

describe('a place in line', () => {
  it('is by ticket, and whoever asks again keeps it', async () => {
    const [, first, second] = (await holderAndLine('key', 2)) as [
      Participant,
      Participant,
      Participant,
    ];
    const [one, two] = [first.ticket ?? NaN, second.ticket ?? NaN];
    expect(two).toBeGreaterThan(one);
    expect(asHeld(await first.ask('key')).ticket).toBe(one);
    expect(await lineAt('key')).toEqual([first.token, second.token]);
    // The answer that told the ticket may not have arrived.
    first.ticket = undefined;
    await first.ask('key');
    expect(await lineAt('key')).toEqual([first.token, second.token]);
    const scores = await redis.zrange('{lock:key}:queue', '0', '-1', 'WITHSCORES');
    expect([scores[1], scores[3]].map(Number)).toEqual([one, two]);
  });

  it('that was lost is taken again with the ticket it had', async () => {
    const [, first, second] = await holderAndLine('key', 2);
    await redis.zremrangebyrank('{lock:key}:queue', 0, 0);
    expect(await lineAt('key')).toEqual([second?.token]);
    await first?.ask('key');
    expect(await lineAt('key')).toEqual([first?.token, second?.token]);
  });

  it('a new place is behind all earlier ones, even if the clock of the server was set back meanwhile', async () => {
    const [, first] = await holderAndLine('key', 1);
    const tomorrow = (await serverUs()) + 86_400_000_000;
    await redis.zadd('{lock:key}:queue', tomorrow, 'early 1000 channel');
    const late = await Participant.open(server.url);
    expect(asHeld(await late.ask('key')).ticket).toBe(tomorrow + 1);
    expect(await lineAt('key')).toEqual([first?.token, 'early', late.token]);
  });

  it('outlives the lock, or a holder that dies would take the line along', async () => {
    const [, first] = await holderAndLine('key', 1);
    expect(await redis.pttl('{lock:key}:queue')).toBeGreaterThan(KEEP_MS);
    await redis.pexpire('lock:key', 1);
    await eventually(async () => (await redis.exists('lock:key')) === 0);
    expect(await lineAt('key')).toEqual([first?.token]);
  });

  it('is of no use to those who do not wait: they are told nothing and stand nowhere', async () => {
    const [, first] = await holderAndLine('key', 1);
    const outcome = await first?.store.acquire(request('key'));
    expect(outcome).toMatchObject({ status: 'held', ticket: undefined });
    expect(await lineAt('key')).toEqual([first?.token]);
  });
});

describe('a key that is free while somebody is in line', () => {
  it.each<[string, 'at once' | 'when somebody asks', (holder: Participant) => Promise<unknown>]>([
    ['a release', 'at once', (holder) => holder.store.release(holder.lease('key'))],
    ['a forced release', 'at once', ({ store }) => endHolders(store, 'key')],
    [
      'a holder whose renewal finds the key gone',
      'at once',
      async (holder) => {
        await redis.del('lock:key');
        const renewal = { ...holder.lease('key'), fencingToken: 1, validForMs: 0 };
        expect(await holder.store.extend([renewal])).toEqual([
          { status: 'lost', reason: 'released-elsewhere' },
        ]);
      },
    ],
    [
      'its TTL',
      'when somebody asks',
      async () => {
        await redis.pexpire('lock:key', 1);
        await eventually(async () => (await redis.exists('lock:key')) === 0);
      },
    ],
    ['a DEL by somebody else', 'when somebody asks', () => redis.del('lock:key')],
  ])('by %s is given to the first, %s, and nobody overtakes', async (_what, when, free) => {
    const [holder, first, second] = (await holderAndLine('key', 2)) as [
      Participant,
      Participant,
      Participant,
    ];
    await free(holder);
    if (when === 'at once') {
      await first.hasBeenTold('key', 0);
      expect(await holderOf('key')).toBe(first.token);
    }
    const fresh = await Participant.open(server.url);
    // Once without waiting, and once in line.
    const refused = asHeld(await fresh.store.acquire(request('key')));
    expect(refused.remainingMs).toBeGreaterThan(0);
    expect(refused.remainingMs).toBeLessThanOrEqual(1_000);
    expect(asHeld(await fresh.ask('key')).remainingMs).toBeLessThanOrEqual(1_000);
    expect(await holderOf('key')).toBe(first.token);
    expect(await lineAt('key')).toEqual([second.token, fresh.token]);
    await first.hasBeenTold('key', 0);

    expect(await first.ask('key')).toMatchObject({ status: 'granted', othersWait: true });
    expect(await redis.pttl('lock:key')).toBeGreaterThan(20_000);
    expect(await lineAt('key')).toEqual([second.token, fresh.token]);
  });

  it('is granted to the first when that is the one who asks', async () => {
    const [, first, second] = await holderAndLine('key', 2);
    await redis.del('lock:key');
    expect(await first?.ask('key')).toMatchObject({ status: 'granted', othersWait: true });
    expect(await lineAt('key')).toEqual([second?.token]);
    // The other is told nothing: what comes after it is the first that it hears.
    const [member = ''] = await redis.zrange('{lock:key}:queue', '0', '-1');
    await redis.publish(member.split(' ')[2] ?? '', 'mark 0 lock:mark');
    await eventually(() => (second?.told.length ?? 0) > 0);
    expect(second?.told.map(({ key }) => key)).toEqual(['mark']);
  });

  it('is given for the TTL that was asked for, where that is shorter than a second', async () => {
    const [holder] = await holderAndLine('key', 0);
    const waiter = await Participant.open(server.url);
    await waiter.ask('key', 300);
    await holder.store.release(holder.lease('key'));
    expect(await holderOf('key')).toBe(waiter.token);
    expect(await redis.pttl('lock:key')).toBeLessThanOrEqual(300);
  });

  it('is handed over by a release in one script, and to the last of the line too', async () => {
    const [holder, first, last] = (await holderAndLine('key', 2)) as [
      Participant,
      Participant,
      Participant,
    ];
    await holder.store.release(holder.lease('other')); // the server has the script from here on
    const commands = await server.commandsSentDuring(() =>
      holder.store.release(holder.lease('key')),
    );
    expect(commands.map(([name, sha]) => [name, sha])).toEqual([['evalsha', releaseScript.sha]]);
    expect(await first.ask('key')).toMatchObject({ status: 'granted', othersWait: true });
    await first.store.release(first.lease('key'));
    expect(await last.ask('key')).toMatchObject({ status: 'granted', othersWait: false });
    expect(await redis.exists('{lock:key}:queue')).toBe(0);
  });
});

describe('a process in line that died', () => {
  it.each(['nobody else listens', 'a monitor listens to everything'])(
    'is passed over at once, when %s',
    async (how) => {
      if (how.startsWith('a monitor')) {
        const monitor = new Redis(server.url);
        closings.push(() => {
          monitor.disconnect();
        });
        await monitor.psubscribe('*');
      }
      const [holder, first, second] = (await holderAndLine('key', 2)) as [
        Participant,
        Participant,
        Participant,
      ];
      const [channel = ''] = (await redis.zrange('{lock:key}:queue', '0', '0')).map(
        (member) => member.split(' ')[2] ?? '',
      );
      await first.store.close();
      await eventually(async () => (await redis.pubsub('NUMSUB', channel))[1] === 0);
      await holder.store.release(holder.lease('key'));
      expect(await holderOf('key')).toBe(second.token);
      await second.hasBeenTold('key', 0);
      expect(await lineAt('key')).toEqual([]);
    },
  );

  it('is no runner-up either: the next who is there is told', async () => {
    const [holder, first, second] = await holderAndLine('key', 2);
    const score = first?.ticket ?? 0;
    await redis.zadd('{lock:key}:queue', score + 0.5, 'dead 1000 nobody');
    await holder.store.release(holder.lease('key'));
    await second?.hasBeenTold('key', 1_000);
  });

  it('and its like are passed over, however many they are', async () => {
    const [holder, first] = await holderAndLine('key', 1);
    await putInFront('key', dead(3_400));
    await holder.store.release(holder.lease('key'));
    expect(await holderOf('key')).toBe(first?.token);
    expect(await redis.exists('{lock:key}:queue')).toBe(0);
    await first?.hasBeenTold('key', 0);
  });

  it('and its like do not keep the next living one from being told', async () => {
    const [holder, first, second] = await holderAndLine('key', 2);
    const score = first?.ticket ?? 0;
    for (const [n, member] of dead(300).entries())
      await redis.zadd('{lock:key}:queue', score + (n + 1) / 1_000, member);
    await holder.store.release(holder.lease('key'));
    await second?.hasBeenTold('key', 1_000);
  });
});

describe('a process in line that is cut off and comes back', () => {
  it('keeps its place: all whose subscribers are killed look again, and keep their order', async () => {
    const holder = await serviceAt().acquire('key');
    const order: string[] = [];
    const waits: Promise<unknown>[] = [];
    for (const name of ['one', 'two', 'three']) {
      const waiter = serviceAt();
      const takeTurn = async (): Promise<void> => {
        const lock = await waiter.acquire('key', { wait: '20s' });
        order.push(name);
        await lock.release();
      };
      waits.push(takeTurn());
      await eventually(async () => (await lineAt('key')).length === waits.length);
    }
    const before = await redis.zrange('{lock:key}:queue', '0', '-1', 'WITHSCORES');
    const channels = before.filter((_, index) => index % 2 === 0).map((m) => m.split(' ')[2] ?? '');
    await server.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await redis.zremrangebyrank('{lock:key}:queue', 0, 0); // as if it had been passed over meanwhile
    await eventually(async () => {
      const counts = await redis.pubsub('NUMSUB', ...channels);
      return counts.filter((count) => count === 1).length === channels.length;
    });
    await eventually(async () => (await lineAt('key')).length === 3);
    expect(await redis.zrange('{lock:key}:queue', '0', '-1', 'WITHSCORES')).toEqual(before);
    await holder.release();
    await Promise.all(waits);
    expect(order).toEqual(['one', 'two', 'three']);
  });
});

describe('a process in line that is frozen', () => {
  it('costs its claim: those behind it are told when to look again, one claim after the other', async () => {
    const [holder, second, third] = (await holderAndLine('key', 2)) as [
      Participant,
      Participant,
      Participant,
    ];
    const heard = await frozen('frozen');
    await putInFront('key', ['frozen 200 frozen']);
    await holder.store.release(holder.lease('key'));
    expect(await holderOf('key')).toBe('frozen');
    expect(await redis.pttl('lock:key')).toBeLessThanOrEqual(200);
    await second.hasBeenTold('key', 200);
    await eventually(() => heard.length > 0);
    expect(heard).toEqual(['frozen 0 lock:key']);
    await eventually(async () => (await holderOf('key')) === null);
    expect(await second.ask('key')).toMatchObject({ status: 'granted' });
    expect(third.told).toMatchObject([{ inMs: 400 }]);
  });

  it('does not keep those behind it until the lease of the old holder would have been over', async () => {
    const holder = await serviceAt().acquire('key', { ttl: '1h' });
    const waiting: Promise<unknown>[] = [];
    for (const waiter of [serviceAt(), serviceAt()]) {
      const acquiring = waiter.acquire('key', { wait: '1h' });
      waiting.push(acquiring.then((lock) => lock.release()));
      await eventually(async () => (await lineAt('key')).length === waiting.length);
    }
    await frozen('frozen');
    // Two lines of one process, that want other keys too: none of them can be the runner-up of the other.
    await putInFront('key', ['one 200 frozen', 'two 200 frozen']);
    const releasedAt = performance.now();
    await holder.release();
    await Promise.all(waiting);
    expect(performance.now() - releasedAt).toBeGreaterThan(390);
    expect(await redis.exists('{lock:key}:queue')).toBe(0);
  });
});

describe('who leaves the line', () => {
  it('leaves it in one script', async () => {
    const [holder, first, second] = await holderAndLine('key', 2);
    await first?.leave('other'); // the server has the script from here on
    const commands = await server.commandsSentDuring(async () => first?.leave('key'));
    expect(commands.map(([name, sha]) => [name, sha])).toEqual([['evalsha', releaseScript.sha]]);
    expect(await lineAt('key')).toEqual([second?.token]);
    expect(await holderOf('key')).toBe(holder.token);
  });

  it('hands on what it was given in the meantime, at once', async () => {
    const [holder, first, second] = await holderAndLine('key', 2);
    await holder.store.release(holder.lease('key'));
    expect(await holderOf('key')).toBe(first?.token);
    await first?.leave('key');
    expect(await holderOf('key')).toBe(second?.token);
    await second?.hasBeenTold('key', 0);
  });

  it('passes on a key that was given to it while it left', async () => {
    const holder = await serviceAt().acquire('key');
    const controller = new AbortController();
    const leaver = serviceAt();
    const leaving = leaver.acquire('key', { signal: controller.signal });
    const outcome = expect(leaving).rejects.toThrow();
    await eventually(async () => (await lineAt('key')).length === 1);
    const [member = ''] = await redis.zrange('{lock:key}:queue', '0', '-1');
    const [token = '', claim, channel = ''] = member.split(' ');
    expect(claim).toBe('1000');
    controller.abort();
    await outcome;
    await eventually(async () => (await lineAt('key')).length === 0);
    const next = await Participant.open(server.url);
    await next.ask('key');
    // What a server that was a little slower would have done.
    await redis.set('lock:key', token, 'PX', 600_000);
    await redis.publish(channel, `${tailOf(token)} 0 lock:key`);
    await eventually(async () => (await holderOf('key')) === next.token);
    await next.hasBeenTold('key', 0);
    expect(await holder.release()).toBe(false);
  });

  it.each<[what: string, options: AcquireOptions]>([
    ['ends no lease', {}],
    ['frees no key that is kept after its lock', { minHold: 20_000 }],
  ])('is not mistaken for a holder: a call that comes late %s', async (_what, options) => {
    const holder = await serviceAt().acquire('key');
    const service = serviceAt();
    const acquiring = service.acquire('key', options);
    await eventually(async () => (await lineAt('key')).length === 1);
    const [member = ''] = await redis.zrange('{lock:key}:queue', '0', '-1');
    const [token = '', , channel = ''] = member.split(' ');
    await holder.release();
    const lock = await acquiring;
    expect(await holderOf('key')).toBe(token);
    if (options.minHold !== undefined) await lock.release();
    await redis.publish(channel, `${tailOf(token)} 0 lock:key`);
    await hasHeardCalls(service, channel);
    expect(await holderOf('key')).toBe(token);
    if (options.minHold === undefined) expect(await lock.release()).toBe(true);
  });

  it('frees no key because of a message: only what it has left itself', async () => {
    const service = serviceAt();
    const mine = await service.acquire('mine');
    const waiting = service.acquire('mine');
    await eventually(async () => (await lineAt('mine')).length === 1);
    const [, , channel = ''] = (await memberAt('mine')).split(' ');
    const foreign = newOwnerToken(systemRuntime, { maker: 'elsewhere.' });
    await redis.set('lock:foreign', foreign, 'PX', 600_000);
    const held = (await holderOf('mine')) ?? '';
    for (const token of [foreign, held]) {
      await redis.publish(channel, `${token} 0 lock:foreign`);
      await redis.publish(channel, `${tailOf(token)} 0 lock:foreign`);
      await redis.publish(channel, `${tailOf(token)} 0 lock:mine`);
    }
    await hasHeardCalls(service, channel);
    expect([await holderOf('foreign'), await holderOf('mine')]).toEqual([foreign, held]);
    await mine.release();
    await (await waiting).release();
  });
});

/** A call that is heard after all others: it passes on what a caller was given that has gone. */
async function hasHeardCalls(service: LockService, channel: string): Promise<void> {
  await redis.set('lock:left', 'mine', 'PX', 600_000);
  const controller = new AbortController();
  const leaving = service.acquire('left', { signal: controller.signal }).catch(() => undefined);
  await eventually(async () => (await lineAt('left')).length === 1);
  const [token = ''] = await lineAt('left');
  controller.abort();
  await leaving;
  await eventually(async () => (await lineAt('left')).length === 0);
  await redis.set('lock:left', token, 'PX', 600_000);
  await redis.publish(channel, `${tailOf(token)} 0 lock:left`);
  await eventually(async () => (await holderOf('left')) === null);
}

describe('who wants several keys', () => {
  it('HF-54 leaves a line at a free key to those behind when another key is busy', async () => {
    const [, first, second] = (await holderAndLine('key', 2)) as [
      Participant,
      Participant,
      Participant,
    ];
    await holderAndLine('busy', 0);
    await redis.del('lock:key');
    expect(asHeld(await first.ask(['key', 'busy'])).key).toBe('busy');
    await second.hasBeenTold('key', 0);
    expect(await holderOf('key')).toBe(second.token);
    expect(await lineAt('key')).toEqual([]);
    expect(await lineAt('busy')).toEqual([first.token]);
  });

  const three = () => participants(3) as Promise<[Participant, Participant, Participant]>;

  it('stands in the line of the busy one, and has none of them meanwhile', async () => {
    const [both, one, other] = await three();
    await one.ask('b');
    expect(await both.ask(['a', 'b'])).toMatchObject({ status: 'held', key: 'b' });
    expect([await lineAt('a'), await lineAt('b')]).toEqual([[], [both.token]]);
    expect(await other.ask('a')).toMatchObject({ status: 'granted' });
    await other.store.release(other.lease('a'));
    await one.store.release(one.lease('b'));
    expect([await holderOf('a'), await holderOf('b')]).toEqual([null, both.token]);
    await both.hasBeenTold('b', 0);
    expect(await both.ask(['b', 'a'])).toMatchObject({ status: 'granted', othersWait: false });
    expect(await redis.keys('*queue')).toEqual([]);
    await both.store.release(both.lease(['a', 'b']));
    expect(await redis.keys('lock:*')).toEqual([]);
  });

  it('keeps what it holds when it is refused at the first of them', async () => {
    const [both, one] = await three();
    await one.ask('b');
    await both.ask('a');
    expect(await both.ask(['b', 'a'])).toMatchObject({ status: 'held', key: 'b' });
    expect(await holderOf('a')).toBe(both.token);
  });

  it('keeps nothing when it is refused at a later one: the next in line gets that', async () => {
    const [both, one, other] = await three();
    await one.ask('b');
    await both.ask('a');
    await other.ask('a');
    expect(await both.ask(['a', 'b'])).toMatchObject({ status: 'held', key: 'b' });
    expect(await holderOf('a')).toBe(other.token);
    await other.hasBeenTold('a', 0);
  });

  it('comes to the line of another key as the last', async () => {
    const [both, one, other] = await three();
    await one.ask('a');
    await both.ask(['a', 'b']);
    await other.store.acquire(request('b', { token: 'theirs' }));
    expect(await other.ask('b')).toMatchObject({ status: 'held' });
    await one.store.release(one.lease('a'));
    expect(await both.ask(['a', 'b'])).toMatchObject({ status: 'held', key: 'b' });
    expect(await lineAt('b')).toEqual([other.token, both.token]);
  });

  it('HF-3 stands in line again with its ticket where the lines were lost', async () => {
    const [both, one, other] = await three();
    await one.ask('b');
    await both.ask(['a', 'b']);
    await redis.flushall();
    await one.ask('b');
    await other.ask('b');
    await both.ask(['b', 'a']);
    expect(await lineAt('b')).toEqual([both.token, other.token]);
  });

  it('holds those before the busy one where it asks for that, unless the busy one has been held for longer', async () => {
    const [both, one] = await three();
    await one.ask('b');
    const ask = (limitMs: number): Promise<AcquireOutcome> =>
      both.store.acquire({
        ...{ ...both.lease(['a', 'b', 'c']), line: LINE },
        keeps: { limitMs, ttlMs: 1_100, before: 0 },
      });
    expect(await ask(0)).toMatchObject({ status: 'held', key: 'b', kept: false });
    expect(await holderOf('a')).toBeNull();
    expect(await ask(60_000)).toMatchObject({ status: 'held', key: 'b', kept: true });
    expect([await holderOf('a'), await holderOf('c')]).toEqual([both.token, null]);
    expect(await redis.pttl('lock:a')).toBeLessThanOrEqual(1_100);
    await one.store.release(one.lease('b'));
    expect(await both.ask(['b', 'a', 'c'])).toMatchObject({ status: 'granted' });
  });

  it('is told for how long the busy one has been held', async () => {
    const [both, one] = await three();
    await one.ask('b');
    const since = await serverUs();
    await redis.set('{lock:b}:fence', String(since - 5_000_000), 'KEEPTTL');
    const { heldForMs } = asHeld(await both.ask(['a', 'b']));
    expect(heldForMs).toBeGreaterThanOrEqual(5_000);
    expect(heldForMs).toBeLessThan(5_000 + ((await serverUs()) - since) / 1_000 + 1);
  });

  it('that others want in part finish, and each is held by one at a time', async () => {
    const services = Array.from({ length: 3 }, () => serviceAt());
    const held = new Set<string>();
    const takeTurns = async (service: LockService, number: number): Promise<void> => {
      for (let turn = 0; turn < 10; turn += 1) {
        const all = ['a', 'b', 'c'];
        const keys = all.filter((_, index) => (number + turn + index) % 3 !== 0);
        const lock = await service.acquire(keys, { wait: '20s' });
        for (const key of keys) {
          expect(held.has(key)).toBe(false);
          held.add(key);
        }
        await new Promise((resolve) => setTimeout(resolve, 1));
        for (const key of keys) held.delete(key);
        await lock.release();
      }
    };
    await Promise.all(services.map(takeTurns));
    expect(await redis.keys('lock:*')).toEqual([]);
    expect(await redis.keys('*queue')).toEqual([]);
  });
});

describe('a line on a Cluster', () => {
  it.each([
    ['a', 'b'],
    ['b', 'a'],
  ])(
    'gives back what it has in other slots, and calls whoever waits for the busy one (%s)',
    async (busy, free) => {
      const cluster = await RedisCluster.start({ masters: 2 });
      const clients: Cluster[] = [];
      const client = (): Cluster => {
        const one = new Cluster(cluster.startupNodes, { lazyConnect: true });
        clients.push(one);
        return one;
      };
      const [both, holder, other] = (await Promise.all(
        [1, 2, 3].map(() => Participant.open(client())),
      )) as [Participant, Participant, Participant];
      await holder.ask(busy);
      await both.ask(free);
      await other.ask(free);
      // Refused at the first, it keeps the other one. Refused at the second, it has neither.
      expect(await both.ask([busy, free])).toMatchObject({ status: 'held', key: busy });
      expect(await other.ask(free)).toMatchObject({ status: 'held' });
      expect(await both.ask([free, busy])).toMatchObject({ status: 'held', key: busy });
      await other.hasBeenTold(free, 0);
      expect(await other.ask(free)).toMatchObject({ status: 'granted' });
      await other.store.release(other.lease(free));
      await holder.store.release(holder.lease(busy));
      await both.hasBeenTold(busy, 0);
      expect(await both.ask([busy, free])).toMatchObject({ status: 'granted', othersWait: false });
      for (const close of closings.splice(0)) await close();
      for (const one of clients) one.disconnect();
      await cluster.stop();
    },
    60_000,
  );

  it('does not know who listens to a plain channel at other nodes, and passes over nobody', async () => {
    const cluster = await RedisCluster.start({ masters: 2 });
    const client = new Cluster(cluster.startupNodes, { lazyConnect: true });
    const { store } = await openStore({ redis: client });
    const lease = request('key');
    await store.acquire(lease);
    const node = await cluster.masterOf('lock:key');
    await node.command('ZADD', '{lock:key}:queue', 1, 'elsewhere 700 of another node');
    await store.release(lease);
    expect(await node.command('GET', 'lock:key')).toBe('elsewhere');
    expect(Number(await node.command('PTTL', 'lock:key'))).toBeLessThanOrEqual(700);
    await store.close();
    client.disconnect();
    await cluster.stop();
  }, 60_000);
});

describe('a line that is not as it should be', () => {
  it('with members that are garbage disturbs nobody', async () => {
    const [holder, first] = await holderAndLine('key', 1);
    await putInFront('key', ['', 'garbage', 'two words', 'token NaN channel', 'a -1 b', '\n\0']);
    await holder.store.release(holder.lease('key'));
    expect(await holderOf('key')).toBe(first?.token);
    expect(await first?.ask('key')).toMatchObject({ status: 'granted' });
    expect(await redis.exists('{lock:key}:queue')).toBe(0);
  });

  it('because it is of another type disturbs nobody', async () => {
    const [holder, waiter] = (await participants(2)) as [Participant, Participant];
    await redis.set('{lock:key}:queue', 'of another type');
    expect(await holder.ask('key')).toMatchObject({ status: 'granted', othersWait: false });
    expect(await waiter.ask('key')).toMatchObject({ status: 'held', ticket: undefined });
    const renewal = { ...holder.lease('key'), fencingToken: 1, validForMs: 30_000 };
    expect(await holder.store.extend([renewal])).toEqual([{ status: 'extended' }]);
    expect(await holder.store.release(holder.lease('key'))).toEqual({ status: 'released' });
    expect(await waiter.store.acquire(waiter.lease('key'))).toMatchObject({ status: 'granted' });
    await waiter.leave('key');
    expect(await endHolders(waiter.store, 'key')).toBe(0);
    expect(await redis.get('{lock:key}:queue')).toBe('of another type');
  });

  it('because memory is full loses nobody: what a holder left to expire is given to the first', async () => {
    const [, first, second] = await holderAndLine('key', 2);
    await redis.config('SET', 'maxmemory', '1');
    await redis.pexpire('lock:key', 1);
    await eventually(async () => (await redis.exists('lock:key')) === 0);
    expect(await second?.store.acquire(request('key'))).toMatchObject({ status: 'held' });
    expect(await holderOf('key')).toBe(first?.token);
    await first?.hasBeenTold('key', 0);
  });

  it('because memory is full loses nobody: a release hands the key on, and it can be taken', async () => {
    const [holder, first, second] = (await holderAndLine('key', 2)) as [
      Participant,
      Participant,
      Participant,
    ];
    await redis.config('SET', 'maxmemory', '1');
    expect(await holder.store.release(holder.lease('key'))).toEqual({ status: 'released' });
    expect(await holderOf('key')).toBe(first.token);
    await first.hasBeenTold('key', 0);
    await second.hasBeenTold('key', 1_000);
    expect(await first.ask('key')).toMatchObject({ status: 'granted' });
    await first.store.release(first.lease('key'));
    expect(await holderOf('key')).toBe(second.token);
    // The last of the line finds no line to leave, so that Redis refuses its first write. It has its claim as before.
    expect(await second.ask('key')).toMatchObject({ status: 'unavailable' });
    expect(await holderOf('key')).toBe(second.token);
    await redis.config('SET', 'maxmemory', '0');
    expect(await second.ask('key')).toMatchObject({ status: 'granted' });
  });
});

describe('lines at several masters', () => {
  const release = (...keys: string[]): Promise<unknown> => {
    const call = encoded(releaseScript, {
      names: keys.map(keyNames('lock:')),
      token: 'mine',
      lineMode: 'quorum',
      fenceKeepMs: KEEP_MS,
      member: '',
    });
    return redis.eval(releaseScript.lua, ...call);
  };

  async function standAt(key: string, members: readonly string[]): Promise<void> {
    await redis.set(`lock:${key}`, 'mine');
    await putInFront(key, members);
  }

  const lines = (name: string, count: number): string[] =>
    Array.from(
      { length: count },
      (_, index) => `${name}-${String(index)} 0 ${name}-${String(index)}`,
    );

  it('are all called by a release, and the key is free for whoever comes first', async () => {
    const living = lines('alive', 3);
    const ears = await Promise.all(living.map((_, index) => frozen(`alive-${String(index)}`)));
    await standAt('a', living);
    expect(await release('a')).toBe(1);
    await eventually(() => ears.every((messages) => messages.length === 1));
    expect(ears.map(([message]) => message)).toEqual(
      // One after the other: all at once they would split the votes.
      ['alive-0 0', 'alive-1 10', 'alive-2 20'].map((call) => `${call} lock:a`),
    );
    expect(await redis.exists('lock:a')).toBe(0);
    expect(await redis.zrange('{lock:a}:queue', '0', '-1')).toEqual(living);
  });

  it('HF-10 are called until 100 processes have heard it, and stay in line until they have the lock', async () => {
    const ear = new Redis(server.url);
    closings.push(() => {
      ear.disconnect();
    });
    const living = lines('alive', 150);
    const heard: string[] = [];
    ear.on('message', (channel: string) => heard.push(channel));
    await ear.subscribe(...living.map((member) => member.split(' ')[2] ?? ''));
    // Each process has two lines.
    const mixed = living.flatMap((member) => [
      `dead-before-${member}-nobody`,
      member,
      member.replace(' ', '-again '),
    ]);
    await standAt('a', mixed);
    expect(await release('a')).toBe(1);
    await eventually(() => heard.length >= 199);
    await ear.ping();
    const channels = living.slice(0, 100).map((member) => member.split(' ')[2]);
    expect([...new Set(heard)]).toEqual(channels);
    expect(await redis.zcard('{lock:a}:queue')).toBe(mixed.length - 100);
  });

  it('are called behind dead ones, however many those are, at each key', async () => {
    const heard = await frozen('alive');
    await standAt('a', [...lines('dead', 1_200), 'living 0 alive']);
    await standAt('b', lines('dead', 300));
    expect(await release('a', 'b')).toBe(2);
    expect(await redis.zcard('{lock:a}:queue')).toBe(1);
    expect(await redis.zcard('{lock:b}:queue')).toBe(0);
    await eventually(() => heard.length === 1);
  });

  it('hold nothing for a caller of several keys that was refused', async () => {
    const masters = await Promise.all(Array.from({ length: 3 }, () => RedisServer.start()));
    const urls = masters.map(({ url }) => url);
    const [holder, both] = await Promise.all([Participant.open(urls), Participant.open(urls)]);
    await holder.ask('b');
    const keeps = { limitMs: 60_000, ttlMs: 60_000, before: 0 };
    const asked = { ...both.lease(['a', 'b']), line: LINE, keeps };
    expect((await both.store.acquire(asked)).status).toBe('held');
    const taken = (): Promise<unknown[]> =>
      Promise.all(masters.map((each) => each.command('EXISTS', 'lock:a')));
    await eventually(async () => (await taken()).every((count) => count === 0));
    for (const close of closings.splice(0)) await close();
    await Promise.all(masters.map((master) => master.stop()));
  }, 30_000);

  it('are called by a release that the store asks all of them for, and nobody is given the key', async () => {
    const masters = await Promise.all(Array.from({ length: 3 }, () => RedisServer.start()));
    const urls = masters.map(({ url }) => url);
    const [holder, one, two] = await Promise.all([
      Participant.open(urls),
      Participant.open(urls),
      Participant.open(urls),
    ]);
    await holder.ask('key');
    // Of several masters none decides who is next: there is no ticket.
    const refused = await one.ask('key');
    expect(refused.status).toBe('held');
    expect(refused).not.toHaveProperty('ticket', expect.anything());
    await two.ask('key');
    await holder.store.release(holder.lease('key'));
    // Without `to`: a vote of their own that was removed late, on a busy machine.
    const callsOf = ({ told }: Participant) => told.filter(({ to }) => to !== undefined);
    await eventually(() => [one, two].every((each) => callsOf(each).length > 0));
    for (const each of [one, two])
      expect(callsOf(each)[0]).toMatchObject({ key: 'key', to: 'line' });
    // A release is over when a majority has answered.
    await eventually(async () => {
      const left = await Promise.all(masters.map((each) => each.command('EXISTS', 'lock:key')));
      return left.every((count) => count === 0);
    });
    expect(await two.ask('key')).toMatchObject({ status: 'granted' });
    for (const close of closings.splice(0)) await close();
    await Promise.all(masters.map((master) => master.stop()));
  }, 30_000);
});

describe('fencing tokens for turns', () => {
  const grantOf = (outcome: AcquireOutcome): number => {
    if (outcome.status !== 'granted') throw new Error(JSON.stringify(outcome));
    return outcome.fencingToken;
  };
  const fence = async (): Promise<number> => Number(await redis.get('{lock:key}:fence'));

  async function newStore(): Promise<LockStore> {
    const { store } = await openStore({ redis: server.url });
    closings.push(() => store.close());
    return store;
  }

  it('are not reserved: the fence is the token of the grant, and the release raises it above the last that was used', async () => {
    const store = await newStore();
    const lease = request('key');
    const outcome = await store.acquire(lease);
    expect(outcome).toMatchObject({ status: 'granted', isFromClock: true });
    const first = grantOf(outcome);
    expect(await fence()).toBe(first);
    await store.release(lease, first + 3);
    expect(await fence()).toBe(first + 4);
  });

  it('are one alone where it is not known which was the last: the fence is above it', async () => {
    const store = await newStore();
    for (const end of [
      (lease: LeaseRequest) => store.release(lease),
      () => endHolders(store, 'key'),
    ]) {
      const lease = request('key');
      const first = grantOf(await store.acquire(lease));
      await end(lease);
      expect(await fence()).toBe(first + 1);
    }
  });

  it('are none where the token of the grant is ahead of the clock', async () => {
    const store = await newStore();
    await redis.set('{lock:key}:fence', (await serverUs()) + 100_000_000);
    const outcome = await store.acquire(request('key'));
    expect(outcome).toMatchObject({ status: 'granted', isFromClock: false });
    expect(outcome).not.toMatchObject({ isPlain: true });
  });

  it('grow through every turn and every grant, however the lease before ended', async () => {
    const store = await newStore();
    // Ahead of the clock, which would otherwise make up for tokens that were forgotten.
    let last = (await serverUs()) + 100_000_000;
    await redis.set('{lock:key}:fence', last);
    for (let round = 0; round < 60; round += 1) {
      const lease = request('key');
      const first = grantOf(await store.acquire(lease));
      expect(first).toBeGreaterThan(last);
      last = first + (round % 16);
      const isUnknown = round % 5 >= 3;
      // A renewal brings the last token to the store before the end that names none.
      if (isUnknown) await store.extend([{ ...lease, fencingToken: last }]);
      if (round % 5 === 4) await redis.del('lock:key');
      else if (round % 5 === 3) await endHolders(store, 'key');
      else await store.release(lease, last);
    }
  });

  it('grow through plain grants and plain releases, too', async () => {
    const store = await newStore();
    let last = 0;
    for (let round = 0; round < 200; round += 1) {
      const lease = request('key');
      const outcome = await store.acquire(lease);
      expect(outcome).toMatchObject({ status: 'granted', isPlain: true, isFromClock: true });
      const first = grantOf(outcome);
      expect(first).toBeGreaterThan(last);
      last = first;
      if (round % 5 === 4) await redis.del('lock:key');
      else await store.release({ ...lease, isPlain: true }, last);
    }
  });

  it('grow also when the clock of the server does not: the last of one lease, then the first of the next', async () => {
    const store = await newStore();
    const ahead = (await serverUs()) + 100_000_000;
    await redis.set('{lock:key}:fence', String(ahead));
    const lease = request('key');
    expect(grantOf(await store.acquire(lease))).toBe(ahead + 1);
    await store.release(lease, ahead + 16);
    expect(grantOf(await store.acquire(request('key')))).toBeGreaterThan(ahead + 16);
  });

  it('stay close to the clock of the server, however many leases are taken and given back', async () => {
    const store = await newStore();
    for (let round = 0; round < 1_500; round += 1) {
      const lease = request('key');
      const first = grantOf(await store.acquire(lease));
      await store.release({ ...lease, isPlain: round % 2 === 0 }, first);
    }
    expect((await fence()) - (await serverUs())).toBeLessThan(1_000_000);
  });
});

describe('a place in line', () => {
  it('that was given the key and was too late for it is still before those who came after it', async () => {
    const first = request('late', { ttlMs: 50, line: { id: 'first', ttlMs: 50 } });
    const second = request('late', { ttlMs: 30_000, line: LINE });
    const { store } = await openStore({ redis: server.url });
    try {
      const holder = request('late');
      await store.listen(() => undefined);
      await store.acquire(holder);
      const standing = await store.acquire(first);
      await store.acquire(second);
      await store.release(holder);
      // Its claim of 50 ms runs out unused.
      await eventually(async () => (await heldMs(store, 'late')) === 0);
      const ticket = standing.status === 'held' ? standing.ticket : undefined;
      const outcome = await store.acquire({ ...first, line: { id: 'first', ttlMs: 50, ticket } });
      expect(outcome.status).toBe('granted');
    } finally {
      await store.close();
    }
  });

  it('lasts at least as long as it did, whoever else is refused', async () => {
    const { store } = await openStore({ redis: server.url, fenceKeepMs: 100 });
    try {
      await store.acquire(request('lasting', { ttlMs: 60_000 }));
      await store.acquire(request('lasting', { line: LINE }));
      const queue = '{lock:lasting}:queue';
      expect(Number(await server.command('PTTL', queue))).toBeGreaterThan(50_000);
      await server.command('PEXPIRE', 'lock:lasting', 1_000);
      await store.acquire(request('lasting', { line: { id: 'other', ttlMs: 1_000 } }));
      expect(Number(await server.command('PTTL', queue))).toBeGreaterThan(50_000);
    } finally {
      await store.close();
    }
  });
});
