import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import {
  LockConfigurationError,
  LockNotAcquiredError,
  LockService,
  LockStoreUnavailableError,
} from 'nestjs-holdfast';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AcquireOutcome } from '../../lib/store/lock-store.js';
import { detailOf } from '../support/detail.js';
import { eventually } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { openStore, request } from './open-store.js';

let servers: RedisServer[] = [];
let ends: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  servers = await Promise.all([1, 2, 3].map(() => RedisServer.start()));
});

afterEach(async () => {
  await Promise.all(ends.map((end) => end()));
  ends = [];
  await Promise.all(servers.map((server) => server.stop()));
});

const name = (server: RedisServer | undefined): string => `127.0.0.1:${String(server?.port)}`;

async function open(redis: readonly string[]): Promise<Awaited<ReturnType<typeof openStore>>> {
  const opened = await openStore({ redis, nodeTimeoutMs: 500 });
  ends.push(() => opened.store.close());
  return opened;
}

const fencingTokenOf = (outcome: AcquireOutcome): number =>
  outcome.status === 'granted' ? outcome.fencingToken : NaN;

describe('what the log says of a quorum', () => {
  it('is how many nodes are left, when locks are refused, and when they are granted again', async () => {
    const [first, second] = servers;
    const { warnings } = await open(servers.map(({ url }) => url));
    const said = async (text: string): Promise<void> => {
      await eventually(() => warnings.includes(text), { withinMs: 15_000 });
    };
    expect(warnings).toEqual([]);

    await first?.kill();
    await said(
      `The connection to Redis at ${name(first)} was lost. 2 of 3 nodes are usable: locks are granted.`,
    );
    await second?.kill();
    await said(
      `The connection to Redis at ${name(second)} was lost. 1 of 3 nodes are usable: locks are refused (503) until 2 are usable.`,
    );
    await first?.restart();
    await said(
      `Redis at ${name(first)} is usable again. 2 of 3 nodes are usable: locks are granted.`,
    );
  });
});

describe('one server under two names', () => {
  it('is refused at the start', async () => {
    const [first, second] = servers;
    const port = String(first?.port);
    const redis = [`redis://127.0.0.1:${port}`, `redis://localhost:${port}`, String(second?.url)];
    await expect(openStore({ redis })).rejects.toThrow(LockConfigurationError);
    await expect(openStore({ redis })).rejects.toThrow(
      /lists one server twice: 127.* and localhost/,
    );
  });

  it('has one vote when that shows later', async () => {
    const [first, second] = servers;
    const port = String(first?.port);
    await Promise.all([first?.kill(), second?.kill()]);
    const { store, warnings } = await open([
      `redis://127.0.0.1:${port}`,
      `redis://localhost:${port}`,
      String(second?.url),
    ]);
    await first?.restart();
    await eventually(() => warnings.some((text) => text.includes('is the same server as')), {
      withinMs: 15_000,
    });
    const outcome = await store.acquire(request('key'));
    expect(outcome.status).toBe('unavailable');
    const { hasQuorum, nodes } = await store.health();
    expect(hasQuorum).toBe(false);
    expect(nodes.map(({ problem }) => problem ?? '').join()).toContain('is the same server as');
    await second?.restart();
    let tries = 0;
    await eventually(
      async () => {
        tries += 1;
        return (await store.acquire(request(`key-${tries}`))).status === 'granted';
      },
      { withinMs: 15_000 },
    );
  });
});

describe('a replica in the list', () => {
  it('is named by the log and by health, which does not count it', async () => {
    const [first, second] = servers as [RedisServer, RedisServer];
    const replica = await RedisServer.start({ replicaOf: first });
    ends.push(() => replica.stop());
    const { store, warnings } = await open([first.url, second.url, replica.url]);
    const problem = 'is a replica: give its master';
    expect(warnings.join('\n')).toContain(`${name(replica)} cannot grant locks: it ${problem}.`);
    const { nodes, hasQuorum } = await store.health();
    expect(nodes.map((node) => node.problem)).toEqual([undefined, undefined, problem]);
    expect(hasQuorum).toBe(true);
  });
});

describe('locks without TTL that other software left on two of three masters, each its own', () => {
  it('are seen by inspect, and named by the refusal', async () => {
    const [first, second] = servers as [RedisServer, RedisServer];
    const locks = new LockService({ redis: servers.map(({ url }) => url) });
    ends.push(() => locks.shutdown(0));
    await first.command('SET', 'lock:left', 'X');
    await second.command('SET', 'lock:left', 'Y');
    expect(await locks.inspect('left')).toEqual({ held: true, remainingMs: Infinity });
    const refusal = await locks.acquire('left', { wait: 0 }).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(LockNotAcquiredError);
    expect(refusal).toMatchObject({ retryAfterMs: Infinity });
    expect(detailOf(refusal)).toContain('other software holds it with a lock that has no TTL');
    const waiting = locks.acquire('left', { wait: '20s' });
    expect(await locks.forceRelease('left')).toBe(true);
    expect(await (await waiting).release()).toBe(true);
  });
});

describe('replicas that are not there', () => {
  it('are missed by the log and by health', async () => {
    const [first] = servers as [RedisServer];
    const opened = await openStore({ redis: first.url, replicas: { ack: 1, timeoutMs: 50 } });
    ends.push(() => opened.store.close());
    const problem = 'has 0 of the 1 replicas that "replicas" asks for';
    expect(opened.warnings.join()).toContain(problem);
    expect(await opened.store.health()).toMatchObject({ hasQuorum: false, nodes: [{ problem }] });
    const outcome = await opened.store.acquire(request('key'));
    expect(outcome).toMatchObject({ status: 'unavailable', nodes: [{ kind: 'refused' }] });
  });
});

describe('a wrong password', () => {
  it('is nothing that passes: nobody waits for it', async () => {
    const [first] = servers as [RedisServer];
    const admin = new Redis(first.url);
    await admin.config('SET', 'requirepass', 'right');
    admin.disconnect();
    const { store } = await openStore({ redis: `redis://:wrong@127.0.0.1:${String(first.port)}` });
    ends.push(() => store.close());
    const outcome = await eventually(async () => {
      const last = await store.acquire(request('key'));
      return last.status === 'unavailable' && !last.transient ? last : false;
    });
    expect(outcome.nodes).toMatchObject([{ kind: 'error' }]);
    const error = new LockStoreUnavailableError({
      operation: 'acquire',
      keys: ['key'],
      nodes: outcome.nodes,
    });
    expect(error.detail).toContain('must be fixed first');
  });
});

describe('a lease of a quorum', () => {
  const lockKey = 'lock:key';
  const tokensAt = (): Promise<unknown[]> =>
    Promise.all(servers.map((server) => server.command('GET', lockKey)));

  it('that a bare majority granted is brought to the third node soon', async () => {
    const [, , third] = servers as [RedisServer, RedisServer, RedisServer];
    // A vote for somebody who takes it back.
    await third.command('SET', lockKey, 'holdfast:somebody', 'PX', 60_000);
    const { store } = await open(servers.map(({ url }) => url));
    const lease = request('key', { ttlMs: 60_000 });
    expect((await store.acquire(lease)).status).toBe('granted');
    await third.command('DEL', lockKey);
    await eventually(async () => {
      expect(await tokensAt()).toEqual([lease.token, lease.token, lease.token]);
    });
    expect(await store.release(lease, Number.MAX_SAFE_INTEGER - 1)).toEqual({ status: 'released' });
    // A majority decides; the third may be a moment later.
    await eventually(async () => expect(await tokensAt()).toEqual([null, null, null]));
  });

  /** A vote that nobody takes back: whoever asked for it has died. */
  const strayVote = (server: RedisServer, lifeMs: number): Promise<unknown> =>
    server.command('SET', lockKey, 'holdfast:dead', 'PX', lifeMs);

  it('HF-11 is brought to the third node however long the vote of a dead contender stands there', async () => {
    const [, , third] = servers as [RedisServer, RedisServer, RedisServer];
    await strayVote(third, 7_000);
    const { store } = await open(servers.map(({ url }) => url));
    const lease = request('key', { ttlMs: 60_000 });
    expect((await store.acquire(lease)).status).toBe('granted');
    await eventually(async () => expect(await tokensAt()).toEqual(Array(3).fill(lease.token)), {
      withinMs: 20_000,
    });
    await store.release(lease);
    await eventually(async () => expect(await tokensAt()).toEqual([null, null, null]));
  }, 40_000);

  it('HF-11 is brought to a node where a renewal finds such a vote', async () => {
    const [, , third] = servers as [RedisServer, RedisServer, RedisServer];
    const { store } = await open(servers.map(({ url }) => url));
    const lease = request('key', { ttlMs: 60_000 });
    const outcome = await store.acquire(lease);
    await eventually(async () => expect(await tokensAt()).not.toContain(null));
    await strayVote(third, 60_000);
    const renewal = { ...lease, fencingToken: fencingTokenOf(outcome) };
    expect(await store.extend([renewal])).toEqual([{ status: 'extended' }]);
    await third.command('DEL', lockKey);
    await eventually(async () => expect(await tokensAt()).toEqual(Array(3).fill(lease.token)));
  });

  it('HF-11 that is kept by its release is brought to a node that did not have it', async () => {
    const [, , third] = servers as [RedisServer, RedisServer, RedisServer];
    await strayVote(third, 60_000);
    const { store } = await open(servers.map(({ url }) => url));
    const lease = request('key', { ttlMs: 60_000 });
    const outcome = await store.acquire(lease);
    const released = await store.release(lease, fencingTokenOf(outcome), 20_000);
    expect(released).toEqual({ status: 'released' });
    await third.command('DEL', lockKey);
    await eventually(async () => expect(await tokensAt()).toEqual(Array(3).fill(lease.token)));
    expect(Number(await third.command('PTTL', lockKey))).toBeLessThanOrEqual(20_000);
  });

  it('that is kept by its release is kept by a node that was away at that moment, too', async () => {
    const [first] = servers as [RedisServer, RedisServer, RedisServer];
    const proxy = await TcpProxy.start(first.port);
    ends.push(() => proxy.stop());
    const others = servers.slice(1).map(({ url }) => url);
    const { store } = await open([`redis://127.0.0.1:${String(proxy.port)}`, ...others]);
    const lease = request('key', { ttlMs: 60_000 });
    const outcome = await store.acquire(lease);
    await eventually(async () => expect(await tokensAt()).not.toContain(null));
    proxy.refuse();
    proxy.cut();
    expect(await store.release(lease, fencingTokenOf(outcome), 20_000)).toEqual({
      status: 'released',
    });
    proxy.accept();
    await eventually(
      async () => {
        for (const server of servers) {
          const leftMs = Number(await server.command('PTTL', lockKey));
          expect(leftMs).toBeGreaterThan(5_000);
          expect(leftMs).toBeLessThanOrEqual(20_000);
        }
      },
      { withinMs: 10_000 },
    );
  });

  /** A majority may lose the key from then on, one node after the other. */
  const isEverywhere = async (token: string, withinMs: number): Promise<void> => {
    await eventually(async () => expect(await tokensAt()).toEqual(Array(3).fill(token)), {
      withinMs,
    });
  };

  it('that is not renewed is put back on a node that has restarted without it', async () => {
    const [first, second] = servers as [RedisServer, RedisServer, RedisServer];
    const { store } = await open(servers.map(({ url }) => url));
    const lease = request('key', { ttlMs: 15_000 });
    const before = performance.now();
    await store.acquire(lease);
    await isEverywhere(lease.token, 2_000);
    await first.restart();
    await isEverywhere(lease.token, 8_000);
    await second.restart();
    expect((await store.acquire(request('key'))).status).toBe('held');
    const leftMs = 15_000 - (performance.now() - before);
    expect(Number(await first.command('PTTL', lockKey))).toBeLessThanOrEqual(leftMs + 1_000);
    await store.release(lease);
  }, 40_000);

  it.each([
    ['was away at that moment', 'release'],
    ['restarts without it later', 'restart'],
  ])(
    'that is kept by its release is brought to a node that %s',
    async (_what, when) => {
      const [first, , third] = servers as [RedisServer, RedisServer, RedisServer];
      const { store } = await open(servers.map(({ url }) => url));
      if (when === 'release') await third.kill();
      const lease = request('key', { ttlMs: 15_000 });
      const outcome = await store.acquire(lease);
      const before = performance.now();
      await store.release(lease, fencingTokenOf(outcome), 15_000);
      await sleep(1_000); // longer than the release waits for the node
      await third.restart();
      await isEverywhere(lease.token, 8_000);
      const leftMs = 15_000 - (performance.now() - before);
      expect(Number(await third.command('PTTL', lockKey))).toBeLessThanOrEqual(leftMs + 1_000);
      await first.command('FLUSHALL');
      expect((await store.acquire(request('key'))).status).toBe('held');
    },
    40_000,
  );

  it('is not put back by a renewal that the release has overtaken', async () => {
    const [first] = servers as [RedisServer, RedisServer, RedisServer];
    const proxy = await TcpProxy.start(first.port);
    ends.push(() => proxy.stop());
    const redis = [
      `redis://127.0.0.1:${String(proxy.port)}`,
      ...servers.slice(1).map(({ url }) => url),
    ];
    const { store } = await open(redis);
    const lease = request('key', { ttlMs: 60_000 });
    const outcome = await store.acquire(lease);
    await eventually(async () => expect(await tokensAt()).not.toContain(null));
    await first.command('DEL', lockKey); // its fence stays
    proxy.delay(100, 'to-client');
    const renewing = store.extend([{ ...lease, fencingToken: fencingTokenOf(outcome) }]);
    expect(await store.release(lease, fencingTokenOf(outcome))).toEqual({ status: 'released' });
    await renewing;
    await first.command('PING');
    await sleep(400); // longer than any answer is on its way
    expect(await tokensAt()).toEqual([null, null, null]);
  });

  it('that is lost is taken off a node that was silent at that moment', async () => {
    const [first, second, third] = servers as [RedisServer, RedisServer, RedisServer];
    const { store } = await open(servers.map(({ url }) => url));
    const lease = request('key', { ttlMs: 60_000 });
    const outcome = await store.acquire(lease);
    await eventually(async () => expect(await tokensAt()).not.toContain(null));
    await Promise.all([first, second].map((server) => server.command('DEL', lockKey)));
    third.freeze();
    const [renewed] = await store.extend([{ ...lease, fencingToken: fencingTokenOf(outcome) }]);
    expect(renewed?.status).toBe('lost');
    await sleep(700); // longer than its answer is waited for
    third.thaw();
    await eventually(async () => expect(await tokensAt()).toEqual([null, null, null]), {
      withinMs: 15_000,
    });
  });

  it('can be had maxTtl after the clock of a server was wrong, however wrong it was', async () => {
    const [first] = servers as [RedisServer];
    const restartGuard = { maxTtlMs: 300, bootstrap: false };
    const before = await openStore({ redis: first.url, restartGuard });
    await before.store.close();
    const [run = ''] = String(await first.command('GET', 'lock:{epoch}')).split(' ');
    const tomorrow = (Date.now() + 86_400_000) * 1_000;
    await first.command('SET', 'lock:{epoch}', `${run} ${String(tomorrow)}`);
    const { store } = await openStore({ redis: first.url, restartGuard });
    ends.push(() => store.close());
    await eventually(async () => (await store.acquire(request('key'))).status === 'granted');
  });
});
