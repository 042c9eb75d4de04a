import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { RedisStore } from '../../lib/store/redis/node/redis-store.js';
import { redisLockStore } from '../../lib/store/redis/redis-lock-store.js';
import { acquireScript } from '../../lib/store/redis/scripts/acquire.js';
import { extendScript } from '../../lib/store/redis/scripts/extend.js';
import { take } from '../../lib/store/redis/scripts/plain.js';
import { quarantineScript } from '../../lib/store/redis/scripts/quarantine.js';
import { releaseScript } from '../../lib/store/redis/scripts/release.js';
import { transferScript } from '../../lib/store/redis/scripts/transfer.js';
import type { RedisClient } from '../../lib/store/redis/client/redis-client.js';
import { FakeRedis, LOST, RETRY_MS } from '../support/fake-redis.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';
import { request } from './open-store.js';

let runtime: VirtualRuntime;
let redis: FakeRedis;
let store: RedisStore;
let warnings: string[];

/** What its INFO says, by section. */
let info: Partial<Record<string, string>>;

beforeEach(() => {
  runtime = new VirtualRuntime();
  redis = new FakeRedis(runtime);
  info = {};
  redis.answerTo('info', (section = '') => info[section] ?? '');
  warnings = [];
});

afterEach(async () => {
  await during(store.close(), 2_000);
});

/** What comes of it when so much time has passed. */
async function during<T>(outcome: Promise<T>, ms = 10): Promise<T> {
  await runtime.advance(ms);
  const late = Promise.resolve('nothing yet');
  return (await Promise.race([outcome, late])) as T;
}

async function open(
  restartGuard?: { maxTtlMs: number; bootstrap: boolean },
  withinMs = 100,
): Promise<void> {
  store = redisLockStore({
    ...{ redis: ['redis://fake'], keyPrefix: 'lock:', nodeTimeoutMs: 1_000, fenceKeepMs: 600_000 },
    ...{ warn: (message: string) => warnings.push(message), restartGuard },
    ...{ runtime, sourceOf: () => redis },
  }) as RedisStore;
  await during(store.open(), withinMs);
}

const look = (): Promise<unknown> => during(store.looks.look('later'));

const NO_PROBLEMS = {
  ...{ unreachable: false, refusing: false, quarantined: false },
  'no-messages': false,
};

describe('a server that is a replica', () => {
  beforeEach(async () => {
    info.replication = 'role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\n';
    await open();
  });

  it('is said to be one, before locks are tried there', () => {
    expect(warnings).toEqual([
      'Redis at fake:6379 cannot grant locks: it is a replica: give its master. ' +
        'Locks are refused (503) until that is fixed.',
    ]);
    expect(redis.countOf(acquireScript)).toBe(0);
    expect(store.problems).toEqual({ ...NO_PROBLEMS, refusing: true });
  });

  it('has a health that says since when, and what to do', async () => {
    const { nodes } = await during(store.health());
    expect(nodes).toMatchObject([
      {
        problem: 'is a replica: give its master',
        since: new Date(Date.UTC(2030, 0, 1)),
        remedy: expect.stringContaining('Its master is 10.0.0.1:6379'),
      },
    ]);
  });
});

describe('a server in quarantine', () => {
  const IN_QUARANTINE = {
    ...{ status: 'unavailable', transient: true },
    nodes: [{ kind: 'refused', message: expect.stringMatching(/another 5000 ms/) }],
  };

  beforeEach(async () => {
    redis.answerTo(quarantineScript.lua, () => 5_000);
    await open({ maxTtlMs: 60_000, bootstrap: false });
  });

  it('is known to be in it, and to refuse for no other reason', () => {
    expect(store.problems).toEqual({ ...NO_PROBLEMS, quarantined: true });
  });

  it('has a health that says since when', async () => {
    const { nodes } = await during(store.health());
    expect(nodes).toMatchObject([
      { quarantinedForMs: 5_000, since: new Date(Date.UTC(2030, 0, 1)) },
    ]);
  });

  it('refuses a lock', async () => {
    redis.answerTo(acquireScript.sha, () => [-1, 1, 5_000_000]);
    expect(await during(store.acquire(request('key')))).toMatchObject(IN_QUARANTINE);
  });

  it('refuses to have a lease attached, and leaves nothing to put back', async () => {
    redis.answerTo(transferScript.sha, () => [-2, 5_000_000]);
    const transfer = { ...request('key'), to: 'next', lastToken: 1, grants: true };
    expect(await during(store.transfer(transfer))).toMatchObject({ ...IN_QUARANTINE, sent: false });
  });
});

describe('a node of a Cluster that a single connection leads to', () => {
  it.each([
    [1, []],
    [3, [expect.stringMatching(/grants only the locks of its own slots: it is a node of a Cl/)]],
  ])('is reported where it is one of several masters: %d', async (masters, expected) => {
    info.server = 'redis_mode:cluster\r\n';
    redis.answerTo('cluster', () => `cluster_state:ok\r\ncluster_size:${String(masters)}\r\n`);
    await open();
    expect(warnings).toEqual(expected);
  });
});

describe('a server that may evict locks', () => {
  const policy = (name: string): void => {
    info.memory = `maxmemory_policy:${name}\r\n`;
  };
  const evicts = (name: string): unknown =>
    expect.stringMatching(new RegExp(`^Redis at fake:6379 has maxmemory-policy "${name}": .*`));

  it('is reported once for each policy, and again when it was well in between', async () => {
    policy('allkeys-lru');
    await open();
    await look();
    expect(warnings).toEqual([evicts('allkeys-lru')]);
    policy('volatile-ttl');
    await look();
    await look();
    expect(warnings.slice(1)).toEqual([evicts('volatile-ttl')]);
    policy('noeviction');
    await look();
    expect(warnings).toHaveLength(2);
    policy('volatile-ttl');
    await look();
    expect(warnings.slice(2)).toEqual([evicts('volatile-ttl')]);
  });

  it('is reported once on a Cluster, where each look may ask another node', async () => {
    const connect = redis.connect.bind(redis);
    redis.connect = (events): RedisClient =>
      Object.assign(connect(events), { kind: 'cluster' as const });
    policy('allkeys-lru');
    await open();
    policy('noeviction');
    await look();
    policy('allkeys-lru');
    await look();
    expect(warnings).toEqual([evicts('allkeys-lru')]);
  });
});

describe('the health of a server', () => {
  it('has to be there within the time that is asked for', async () => {
    await open();
    redis.answerTo('time', () => LOST);
    const health = store.health(100);
    expect(await during(health, 90)).toBe('nothing yet');
    expect(await during(health, 10)).toMatchObject({
      nodes: [{ reachable: false, problem: 'no answer within 100 ms' }],
      hasQuorum: false,
    });
  });

  it('tells its clock as if it was read in the middle of the round trip', async () => {
    await open();
    redis.delayMs = 20; // the fake reads it at the start
    const { nodes } = await during(store.health(), 500);
    expect(nodes).toMatchObject([{ latencyMs: 20, clockOffsetMs: -10 }]);
  });
});

describe('a server that refuses its connection', () => {
  it('is said to, once, and known to refuse', async () => {
    Object.assign(redis, { database: 3 });
    redis.answerTo('select', () => new Error('NOPERM no permissions to run select'));
    await open();
    for (const key of ['a', 'b'])
      expect(await during(store.acquire(request(key)))).toMatchObject({
        nodes: [{ message: expect.stringMatching(/database 3: NOPERM/) }],
      });
    expect(warnings).toEqual([
      expect.stringMatching(/^Redis at fake:6379 is not usable: .* database 3: NOPERM/),
    ]);
    expect(store.problems).toEqual({ ...NO_PROBLEMS, refusing: true });
  });
});

describe('a server that has no vote', () => {
  it('is sent nothing, and leaves nothing to give back', async () => {
    await open();
    store.looks.setAside('two:6379');
    redis.received.length = 0;
    expect(await during(store.acquire(request('key')))).toMatchObject({
      ...{ status: 'unavailable', sent: false },
      nodes: [{ message: 'is the same server as two:6379' }],
    });
    expect(redis.received).toEqual([]);
  });
});

describe('a request that failed', () => {
  it('has its server examined: what the look finds is reported', async () => {
    await open();
    const oom = new Error('OOM command not allowed when used memory > maxmemory');
    for (const { sha } of [acquireScript, extendScript]) redis.answerTo(sha, () => oom);
    await during(store.extend([request('key')]), 2_000);
    expect(warnings).toEqual([
      expect.stringMatching(/^Redis at fake:6379 is not usable: OOM .* Free memory there/),
    ]);
  });
});

describe('a renewal of as many keys as one script takes', () => {
  it('is one request', async () => {
    await open();
    const keys = Array.from({ length: 500 }, (_, index) => `key:${String(index)}`);
    expect(await during(store.extend([request(keys)]))).toEqual([{ status: 'extended' }]);
    expect(redis.countOf(extendScript)).toBe(1);
  });
});

describe('a server that is connected, and does not answer when it is asked for a lock', () => {
  it('is not usable yet: nothing is said of slots, which it does not have', async () => {
    redis.answerTo(acquireScript.sha, () => LOST);
    await open(undefined, 2_000);
    expect(warnings).toEqual([
      expect.stringMatching(/^Redis at fake:6379 is not usable yet: no answer within 1000 ms/),
    ]);
  });
});

describe('a server that cannot be reached', () => {
  it('is not waited for by those who ask for a lock', async () => {
    await open();
    redis.isUp = false;
    redis.cut();
    await runtime.advance(RETRY_MS + 10);
    expect(await during(store.acquire(request('key')), 0)).toMatchObject({
      ...{ status: 'unavailable', sent: false },
      nodes: [{ kind: 'connection', message: 'connect ECONNREFUSED' }],
    });
  });
});

describe('requests that go out together', () => {
  it('are asked again, each by its whole script, when the reply is none of ours', async () => {
    await open();
    const answerOf = redis.answerOf.bind(redis);
    redis.answerOf = (name, args) =>
      args[0] === take.sha && args[1] !== 4 ? null : answerOf(name, args);
    const asking = ['a', 'b', 'c'].map((key) => store.acquire(request(key)));
    redis.received.length = 0;
    expect(await during(Promise.all(asking), 100)).toMatchObject(
      Array(3).fill({ status: 'granted' }),
    );
    expect(redis.countOf(acquireScript)).toBe(2);
  });

  it('still do so after an answer that came too late', async () => {
    await open();
    redis.delayMs = 1_500;
    await during(store.acquire(request('late')), 1_600);
    redis.delayMs = 0;
    await runtime.advance(30_000);
    redis.received.length = 0;
    const asking = ['a', 'b', 'c'].map((key) => store.acquire(request(key)));
    await during(Promise.all(asking), 100);
    expect(redis.countOf(take)).toBe(2);
  });
});

describe('an entry of the audit log that cannot be written', () => {
  it('is reported as the server says it', async () => {
    await open();
    const message = 'WRONGTYPE Operation against a key holding the wrong kind of value';
    redis.answerTo('xadd', () => new Error(message));
    const noting = store.admin.note('entry').catch((error: unknown) => error);
    expect(await during(noting)).toMatchObject({ nodes: [{ message }] });
  });
});

describe('a store that is closed', () => {
  it('tries a last time to remove what a request may have left', async () => {
    await open();
    redis.answerTo(releaseScript.sha, () => new Error('OOM command not allowed'));
    redis.received.length = 0;
    store.remove(request('key'));
    await runtime.advance(10);
    expect(redis.countOf(releaseScript)).toBe(1);
    await during(store.close(), 2_000);
    expect(redis.countOf(releaseScript)).toBe(2);
  });

  it('sends nothing any more', async () => {
    await open();
    await during(store.close(), 2_000);
    expect(await during(store.acquire(request('key')))).toMatchObject({
      ...{ status: 'unavailable', sent: false },
      nodes: [{ message: 'is closed' }],
    });
  });
});
