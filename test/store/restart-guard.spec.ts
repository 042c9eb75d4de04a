import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import {
  LockConfigurationError,
  LockKeyError,
  LockNotAttachedError,
  LockService,
  LockStoreUnavailableError,
  WithLock,
  type Lock,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import { keyNames } from '../../lib/store/redis/scripts/key-names.js';
import { extendScript } from '../../lib/store/redis/scripts/extend.js';
import type { LineMode } from '../../lib/store/redis/scripts/script.js';
import { releaseScript } from '../../lib/store/redis/scripts/release.js';
import { encoded } from '../support/encoded.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { RedisSentinel } from '../support/redis-sentinel.js';
import { RedisServer, type RedisServerOptions } from '../support/redis-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';

/** Long enough to look at a quarantine on a busy machine, short enough to wait for its end. */
const SHORT_MS = 2_500;
const EPOCH = 'lock:{epoch}';

let ends: (() => Promise<unknown>)[] = [];
let warnings: string[] = [];

beforeEach(() => {
  warnings = [];
  const drop = (): void => undefined;
  Logger.overrideLogger({
    log: drop,
    error: drop,
    warn: (message: unknown) => void warnings.push(String(message)),
  });
});

afterEach(async () => {
  for (const end of ends.toReversed()) await end();
  ends = [];
  Logger.overrideLogger(false);
});

async function start(options: RedisServerOptions = {}): Promise<RedisServer> {
  const server = await RedisServer.start(options);
  ends.push(() => server.stop());
  return server;
}

const startThree = (): Promise<[RedisServer, RedisServer, RedisServer]> =>
  Promise.all([start(), start(), start()]);

function service(options: LockModuleOptions): LockService {
  const locks = new LockService({ nodeTimeout: 500, ttl: '2s', ...options });
  ends.push(() => locks.shutdown(0));
  return locks;
}

async function opened(options: LockModuleOptions): Promise<LockService> {
  const locks = service(options);
  await locks.open();
  return locks;
}

const urlsOf = (servers: readonly RedisServer[]): string[] => servers.map(({ url }) => url);

/** What a try to lock says of the nodes when none of them gives a lock. */
async function outage(locks: LockService, key = 'key'): Promise<LockStoreUnavailableError> {
  const result: unknown = await locks.tryAcquire(key).catch((error: unknown) => error);
  expect(result).toBeInstanceOf(LockStoreUnavailableError);
  return result as LockStoreUnavailableError;
}

const inQuarantine = ({ port }: RedisServer) => ({
  node: `127.0.0.1:${String(port)}`,
  kind: 'refused',
  message: expect.stringMatching(
    /^may have forgotten leases, and grants none for another \d+ ms \("restartGuard"\)$/,
  ),
});

describe('a first deployment', () => {
  it('refuses a lease that is to last longer, also by extend(), detach() and attach()', async () => {
    const server = await start();
    const restartGuard = { maxTtl: '60s', bootstrap: true } as const;
    const locks = await opened({ redis: server.url, ttl: '20s', restartGuard });
    const lock = await locks.acquire('longer');
    const problem = /longer than "restartGuard\.maxTtl"/;
    await expect(lock.extend('61s')).rejects.toThrow(problem);
    await expect(lock.detach({ ttl: '61s' })).rejects.toThrow(problem);
    expect(lock.isHeld).toBe(true);
    const text = await lock.detach({ ttl: '60s' });
    await expect(locks.attach(text, { ttl: '61s' })).rejects.toThrow(problem);
    expect(await (await locks.attach(text)).release()).toBe(true);
  });

  it('waits for maxTtl, once: no server can prove that it forgot nothing', async () => {
    const server = await start();
    const since = performance.now();
    const locks = await opened({ redis: server.url, restartGuard: { maxTtl: SHORT_MS } });
    expect((await outage(locks)).nodes).toEqual([inQuarantine(server)]);
    expect(warnings).toEqual([
      expect.stringMatching(
        /may have forgotten leases .* grants no locks for another \d+ ms \("restartGuard"\)\. Locks are refused \(503\) until then\.$/,
      ),
    ]);

    await (await locks.acquire('key', { wait: '20s' })).release();
    expect(performance.now() - since).toBeGreaterThanOrEqual(SHORT_MS);

    const next = await opened({ redis: server.url, restartGuard: { maxTtl: SHORT_MS } });
    await (await next.acquire('key', { wait: 0 })).release();
    expect(warnings.slice(1)).toEqual([
      expect.stringMatching(/is out of quarantine\. Locks are granted again\.$/),
    ]);
  });

  it('is not refused by a server whose memory is full: locks are, until it has room', async () => {
    const server = await start();
    await server.command('CONFIG', 'SET', 'maxmemory', '1');
    const locks = await opened({ redis: server.url, restartGuard: { maxTtl: SHORT_MS } });
    expect(warnings).toEqual([
      expect.stringMatching(
        /cannot tell whether it was restarted: .*OOM.*Locks are refused \(503\)/,
      ),
    ]);
    await outage(locks);
    await server.command('CONFIG', 'SET', 'maxmemory', '0');
    expect((await outage(locks)).nodes).toEqual([inQuarantine(server)]);
    await (await locks.acquire('key', { wait: '20s' })).release();
  });

  it('does not wait where bootstrap says that the servers are new', async () => {
    const servers = await startThree();
    const locks = await opened({
      redis: urlsOf(servers),
      restartGuard: { maxTtl: '60s', bootstrap: true },
    });
    await (await locks.acquire('key', { wait: 0 })).release();
    expect(warnings).toEqual([
      expect.stringMatching(/^"restartGuard.bootstrap" is set: .* Leave it out/),
    ]);
  });

  it('with bootstrap does not take a server for new that was restarted with its data', async () => {
    const server = await start({ config: { appendonly: 'yes', appendfsync: 'always' } });
    const restartGuard = { maxTtl: '60s', bootstrap: true } as const;
    await opened({ redis: server.url, restartGuard });
    await server.restart();
    expect(await server.command('EXISTS', EPOCH)).toBe(1);
    const locks = await opened({ redis: server.url, restartGuard });
    expect((await outage(locks)).nodes).toEqual([inQuarantine(server)]);
  });
});

describe('what the log says of quarantines', () => {
  const restartGuard = { maxTtl: '1s' } as const;
  const name = ({ port }: RedisServer): string => `127.0.0.1:${String(port)}`;
  const forgot = (server: RedisServer, situation: string): unknown =>
    expect.stringMatching(
      new RegExp(`^Redis at ${name(server)} may have forgotten leases .* ms .*${situation}`),
    );
  const said = (count: number): Promise<unknown> =>
    eventually(() => warnings.length >= count, { withinMs: 15_000 });

  it('is each of them and its end, although nobody asks for a lock', async () => {
    const server = await start();
    await opened({ redis: server.url, restartGuard, ttl: '1s' });
    await said(2);
    await server.kill();
    await said(3);
    await server.restart();
    await said(5);
    const until = 'Locks are refused \\(503\\) until then\\.$';
    expect(warnings).toEqual([
      forgot(server, until),
      `Redis at ${name(server)} is out of quarantine. Locks are granted again.`,
      `The connection to Redis at ${name(server)} was lost. Locks are refused (503) until it is reachable.`,
      forgot(server, until),
      `Redis at ${name(server)} is out of quarantine. Locks are granted again.`,
    ]);
  });

  it('is one that begins while another is on, because the server was emptied', async () => {
    const server = await start();
    const locks = await opened({ redis: server.url, restartGuard: { maxTtl: SHORT_MS } });
    await eventually(async () => Number((await locks.health()).nodes[0]?.quarantinedForMs) < 1_000);
    await server.command('FLUSHALL');
    await outage(locks);
    await outage(locks);
    await said(3);
    expect(warnings).toEqual([
      forgot(server, ''),
      forgot(server, ''),
      expect.stringContaining('is out of quarantine'),
    ]);
  });

  it('counts no node as there that is in one', async () => {
    const servers = await startThree();
    await opened({ redis: urlsOf(servers), restartGuard: { maxTtl: '60s' } });
    const situation = (there: number, quarantined: number): string =>
      `${String(there)} of 3 nodes are usable (${String(quarantined)} in quarantine): locks are refused (503) until 2 are usable.`;
    const escaped = situation(0, 3).replaceAll(/[().]/g, '\\$&');
    expect(warnings).toEqual(servers.map((server) => forgot(server, escaped)));
    await servers[0].kill();
    await said(4);
    expect(warnings[3]).toBe(
      `The connection to Redis at ${name(servers[0])} was lost. ${situation(0, 2)}`,
    );
  });
});

describe('a server that may have forgotten leases', () => {
  it.each<[string, RedisServerOptions, (server: RedisServer) => Promise<unknown>]>([
    ['was killed and came back empty', {}, (server) => server.restart()],
    ['was emptied', {}, (server) => server.command('FLUSHALL')],
    [
      'was restarted with all its data',
      { config: { appendonly: 'yes', appendfsync: 'always' } },
      (server) => server.restart(),
    ],
  ])('votes for new leases only when maxTtl is over: it %s', async (_what, options, fault) => {
    const server = await start(options);
    const restartGuard = { maxTtl: SHORT_MS, bootstrap: true };
    const locks = await opened({ redis: server.url, restartGuard });
    await (await locks.acquire('before', { wait: 0 })).release();

    const since = performance.now();
    await fault(server);
    await eventually(async () => {
      expect((await outage(locks)).nodes).toEqual([inQuarantine(server)]);
    });
    await (await locks.acquire('key', { wait: '20s' })).release();
    expect(performance.now() - since).toBeGreaterThanOrEqual(SHORT_MS);
    await (await locks.acquire('other', { wait: 0 })).release();
  });

  it('is not voted back by bootstrap while the service runs, nor by looking at its health', async () => {
    const server = await start();
    const restartGuard = { maxTtl: '60s', bootstrap: true } as const;
    const locks = await opened({ redis: server.url, restartGuard });
    expect((await locks.health()).nodes[0]?.quarantinedForMs).toBe(0);
    await server.command('FLUSHALL');
    const { nodes, hasQuorum } = await locks.health();
    expect(nodes[0]?.reachable).toBe(true);
    expect(nodes[0]?.quarantinedForMs).toBeGreaterThan(30_000);
    expect(hasQuorum).toBe(false);
    expect((await outage(locks)).nodes).toEqual([inQuarantine(server)]);
  });

  it('lets no detached lock be attached again with older data, while another caller works under it', async () => {
    const server = await start({ config: { dbfilename: 'older.rdb', save: '3600 1' } });
    const restartGuard = { maxTtl: '60s', bootstrap: true } as const;
    const locks = await opened({ redis: server.url, restartGuard, ttl: '30s' });
    const text = await (await locks.acquire('report')).detach();
    await server.command('SAVE');
    const first = await locks.attach(text);
    await server.restart();
    await eventually(async () => (await locks.health()).nodes[0]?.reachable === true);
    const again: unknown = await locks.attach(text).catch((error: unknown) => error);
    expect(again).toBeInstanceOf(LockStoreUnavailableError);
    expect((again as LockStoreUnavailableError).nodes).toEqual([inQuarantine(server)]);
    await first.extend();
    expect(await first.release()).toBe(true);
  });

  it('lets no detached lock be attached again with older data, after it was released', async () => {
    const server = await start({ config: { dbfilename: 'older.rdb', save: '3600 1' } });
    const restartGuard = { maxTtl: SHORT_MS, bootstrap: true } as const;
    const locks = await opened({ redis: server.url, restartGuard });
    const text = await (await locks.acquire('report')).detach();
    await server.command('SAVE');
    await (await locks.attach(text)).release();
    await server.restart();
    const refusals: unknown[] = [];
    await eventually(async () => {
      const refusal: unknown = await locks.attach(text).catch((error: unknown) => error);
      refusals.push(refusal);
      return refusal instanceof LockNotAttachedError;
    });
    expect(refusals).toContainEqual(expect.objectContaining({ nodes: [inQuarantine(server)] }));
  });

  it('does not stand in the way of releases', async () => {
    const server = await start({ config: { appendonly: 'yes', appendfsync: 'always' } });
    const restartGuard = { maxTtl: '60s', bootstrap: true } as const;
    const locks = await opened({ redis: server.url, restartGuard, ttl: '30s' });
    const lock = await locks.acquire('key');
    await server.restart();
    await eventually(async () => (await locks.health()).nodes[0]?.reachable === true);
    expect(await lock.release()).toBe(true);
    expect(await server.command('EXISTS', 'lock:key')).toBe(0);
  });
});

describe('a lease that is still valid', () => {
  /** Waits until the holder is sure of its lease again. */
  const renewed = (lock: Lock): Promise<unknown> =>
    eventually(() => lock.extend(), { withinMs: 10_000 });

  const tokensAt = (servers: readonly RedisServer[]): Promise<unknown[]> =>
    Promise.all(servers.map((server) => server.command('GET', 'lock:key')));

  /** A lease that a bare majority has is brought to the others by itself, also to one that has lost it: here only a renewal is to do that. */
  async function onAll(servers: readonly RedisServer[], locks: LockService): Promise<Lock> {
    const lock = await locks.acquire('key', { autoExtend: false });
    await eventually(async () => !(await tokensAt(servers)).includes(null));
    return lock;
  }

  it('is put back by its renewal on the only server, when that has lost it', async () => {
    const server = await start();
    const restartGuard = { maxTtl: '60s', bootstrap: true } as const;
    const locks = await opened({ redis: server.url, restartGuard, ttl: '20s' });
    const lock = await locks.acquire('key');
    const [token] = await tokensAt([server]);
    await server.restart();
    await renewed(lock);
    expect(await tokensAt([server])).toEqual([token]);
    expect(await server.command('GET', '{lock:key}:fence')).toBe(String(lock.fencingToken));
    expect(await lock.release()).toBe(true);
  });

  it('is kept when a majority of the nodes is restarted at once, and nobody else gets one', async () => {
    const servers = await startThree();
    const options: LockModuleOptions = {
      redis: urlsOf(servers),
      restartGuard: { maxTtl: '60s', bootstrap: true },
      ttl: '20s',
    };
    const [holder, intruder] = [await opened(options), await opened(options)];
    const lock = await holder.acquire('key');
    const [token] = await tokensAt(servers);
    const [kept, ...lost] = servers;

    await Promise.all(lost.map((server) => server.kill()));
    await Promise.all(lost.map((server) => server.restart()));
    // A majority is enough for a renewal: each of the others gets it with the next one that reaches it.
    await eventually(
      async () => {
        await lock.extend();
        expect(await tokensAt([kept, ...lost])).toEqual([token, token, token]);
      },
      { withinMs: 15_000 },
    );
    expect(await intruder.tryAcquire('key')).toBeNull();
    expect(lock.isHeld).toBe(true);

    await eventually(async () => {
      const { nodes } = await outage(intruder, 'another');
      expect(nodes).toEqual(expect.arrayContaining(lost.map(inQuarantine)));
    });
    expect(await lock.release()).toBe(true);
  });

  /** Somebody else asks for the key, in vain, and cleans up after itself. */
  async function askInVain(intruder: LockService): Promise<void> {
    await eventually(async () => {
      const { nodes } = await outage(intruder);
      expect(nodes.every(({ kind }) => kind === 'refused')).toBe(true);
    });
    await intruder.shutdown();
  }

  it('is put back although somebody else asked for the key meanwhile', async () => {
    const server = await start();
    const options: LockModuleOptions = {
      redis: server.url,
      restartGuard: { maxTtl: '60s', bootstrap: true },
      ttl: '20s',
    };
    const [holder, intruder] = [await opened(options), await opened(options)];
    const lock = await holder.acquire('key', { autoExtend: false });
    await server.restart();
    await askInVain(intruder);
    await eventually(() => lock.extend()); // when it is connected again, and not when the quarantine is over
  });

  it('is put back on a majority although somebody else asked for the key meanwhile', async () => {
    const servers = await startThree();
    const options: LockModuleOptions = {
      redis: urlsOf(servers),
      restartGuard: { maxTtl: '60s', bootstrap: true },
      ttl: '20s',
    };
    const [holder, intruder] = [await opened(options), await opened(options)];
    const lock = await onAll(servers, holder);
    await Promise.all(servers.slice(1).map((server) => server.restart()));
    await askInVain(intruder);
    await eventually(() => lock.extend()); // when it is connected again, and not when the quarantine is over
  });

  it('is not put back after a forced release on nodes that had lost it', async () => {
    const servers = await startThree();
    const options: LockModuleOptions = {
      redis: urlsOf(servers),
      restartGuard: { maxTtl: '60s', bootstrap: true },
      ttl: '20s',
    };
    const [holder, operator] = [await opened(options), await opened(options)];
    const lock = await onAll(servers, holder);
    await Promise.all(servers.slice(1).map((server) => server.restart()));
    for (const locks of [holder, operator]) {
      await eventually(async () => {
        expect((await locks.health()).nodes.every(({ reachable }) => reachable)).toBe(true);
      });
    }
    expect(await operator.forceRelease('key')).toBe(true);
    await lock.extend().catch(() => undefined);
    expect(lock.isHeld).toBe(false);
  });

  it('keeps its lock when the server that has it is one that Sentinel has promoted, which grants nothing new', async () => {
    const group = await RedisSentinel.start();
    ends.push(() => group.stop());
    const options: LockModuleOptions = {
      redis: { sentinels: group.sentinels, name: group.name },
      restartGuard: { maxTtl: '90s', bootstrap: true },
      ttl: '60s',
    };
    const [holder, intruder] = [await opened(options), await opened(options)];
    const lock = await holder.acquire('key');
    await group.failOver();
    await eventually(
      async () => {
        const [failure, ...rest] = (await outage(intruder, 'another')).nodes;
        expect(failure).toMatchObject({ kind: 'refused', message: expect.stringMatching(/may/) });
        expect(rest).toEqual([]);
      },
      { withinMs: 20_000 },
    );
    await renewed(lock);
    expect(await intruder.tryAcquire('key')).toBeNull();
    expect(await lock.release()).toBe(true);
  }, 90_000);
});

describe('N = 3, a holder on A and B, and B comes back empty', () => {
  /** Answers what a second client gets that reaches all three, while the first holds its lock. */
  async function secondClient(guard: LockModuleOptions): Promise<{
    readonly first: Lock;
    readonly second: () => Promise<Lock | null>;
  }> {
    const [a, b, c] = await startThree();
    const wayToC = await TcpProxy.start(c.port);
    ends.push(() => wayToC.stop());
    const options = { ...guard, ttl: '60s', autoExtend: false } as const;
    const other = await opened({ ...options, redis: urlsOf([a, b, c]) });
    wayToC.refuse();
    const viaProxy = `redis://127.0.0.1:${String(wayToC.port)}`;
    const holder = await opened({ ...options, redis: [a.url, b.url, viaProxy] });
    const first = await holder.acquire('key');
    expect(await c.command('EXISTS', 'lock:key')).toBe(0);
    await b.restart();
    await eventually(async () => {
      const { nodes } = await other.health();
      expect(nodes.map(({ reachable }) => reachable)).toEqual([true, true, true]);
    });
    return { first, second: () => other.tryAcquire('key') };
  }

  it('without the guard there are two holders: B has lost the lock of the first', async () => {
    const { first, second } = await secondClient({});
    const lock = await second();
    expect([first.isHeld, lock?.isHeld]).toEqual([true, true]);
  });

  it('makes one with the guard', async () => {
    const { first, second } = await secondClient({
      restartGuard: { maxTtl: '60s', bootstrap: true },
    });
    const refused = await second().catch((error: unknown) => error);
    expect(refused === null || refused instanceof LockStoreUnavailableError).toBe(true);
    expect(first.isHeld).toBe(true);
  });

  it('makes one with the guard, and its renewal is on B again', async () => {
    const { first, second } = await secondClient({
      restartGuard: { maxTtl: '60s', bootstrap: true },
    });
    await eventually(() => first.extend());
    expect(await second()).toBeNull();
    expect(first.isHeld).toBe(true);
  });
});

describe('a claim of a key by renewal', () => {
  const [MAIN, FENCE] = ['lock:key', '{lock:key}:fence'];
  const KEEP_MS = 600_000;
  const MAX_TTL_MS = 60_000;
  let server: RedisServer;

  beforeEach(async () => {
    server = await start();
  });

  interface Claim {
    readonly token: string;
    readonly fence: number;
    readonly sureForMs?: number;
    readonly maxTtlMs?: number;
  }

  /** Answers what the script says of the key. */
  async function claim({
    token,
    fence,
    sureForMs = 10_000,
    maxTtlMs = MAX_TTL_MS,
  }: Claim): Promise<unknown> {
    const [seconds, micros] = ((await server.command('TIME')) as string[]).map(Number);
    const sureUntil = Number(seconds) * 1_000_000 + Number(micros) + sureForMs * 1_000;
    const call = encoded(extendScript, {
      names: [keyNames('lock:')('key')],
      renewals: [
        {
          token,
          ttlMs: 30_000,
          fencingToken: fence,
          sureUntilUs: Math.round(sureUntil),
          expectedFence: undefined,
        },
      ],
      epoch: EPOCH,
      fenceKeepMs: KEEP_MS,
      maxTtlMs,
      lineMode: 'quorum',
    });
    const [, answer] = (await server.command('EVAL', extendScript.lua, ...call)) as [
      string,
      unknown,
    ];
    return answer;
  }

  const release = (token: string, lastToken: number, lineMode: LineMode): Promise<unknown> => {
    const call = encoded(releaseScript, {
      names: [keyNames('lock:')('key')],
      token,
      lineMode,
      lastToken,
      maxTtlMs: MAX_TTL_MS,
      fenceKeepMs: KEEP_MS,
      member: '',
    });
    return server.command('EVAL', releaseScript.lua, ...call);
  };

  const holder = (): Promise<unknown> => server.command('GET', MAIN);

  it('is accepted in quarantine, from whoever comes first', async () => {
    expect(await claim({ token: 'holdfast:mine', fence: 7 })).toEqual([1]);
    expect(await holder()).toBe('holdfast:mine');
    expect(await server.command('GET', FENCE)).toBe('7');
    // The holder counts on the whole TTL, however little of it was left.
    expect(Number(await server.command('PTTL', MAIN))).toBeGreaterThan(20_000);
  });

  it.each(['the server has the key', 'the server has forgotten it'])(
    'HF-19 is refused when it comes after the release of the lease: %s',
    async (state) => {
      const token = 'holdfast:mine';
      for (const [fence, used] of [
        [4_000, 4_000],
        [4_000, 4_001],
        [4_000, 4_500],
        [5_022, 5_023],
      ] as const) {
        const lease = { token, fence };
        await server.command('FLUSHALL');
        if (state === 'the server has the key') expect(await claim(lease)).toEqual([1]);
        await release(lease.token, used, 'quorum');
        expect(await claim(lease)).toEqual([0, expect.any(String)]);
        expect(await holder()).toBeNull();
      }
    },
  );

  it('of two in quarantine goes to the one with the larger fencing token, whoever came first', async () => {
    expect(await claim({ token: 'holdfast:older', fence: 7 })).toEqual([1]);
    expect(await claim({ token: 'holdfast:younger', fence: 8 })).toEqual([1]);
    expect(await holder()).toBe('holdfast:younger');
    expect(await claim({ token: 'holdfast:older', fence: 7 })).toEqual([-1]);
    expect(await holder()).toBe('holdfast:younger');
    expect(await server.command('GET', FENCE)).toBe('8');
    expect(await claim({ token: 'holdfast:younger', fence: 8 })).toEqual([1]);
  });

  it('does not take the lock of other software away, which has no fencing token', async () => {
    await server.command('SET', MAIN, 'another library', 'PX', 30_000);
    expect(await claim({ token: 'holdfast:mine', fence: 7 })).toEqual([-1]);
    expect(await holder()).toBe('another library');
  });

  it('is not accepted after the deadline of its holder', async () => {
    expect(await claim({ token: 'holdfast:mine', fence: 7, sureForMs: 0 })).toEqual([0, '0']);
    expect(await claim({ token: 'holdfast:mine', fence: 7, sureForMs: -1 })).toEqual([0, '0']);
    expect(await holder()).toBeNull();
  });

  it('is not accepted from a server that remembers all that it granted', async () => {
    expect(await claim({ token: 'holdfast:mine', fence: 7, maxTtlMs: 0 })).toEqual([0, '0']);
    expect(await claim({ token: 'holdfast:mine', fence: 7 })).toEqual([0, '0']);
    expect(await holder()).toBeNull();
  });

  it('is not accepted after the release of the lease, which may overtake it', async () => {
    await release('holdfast:mine', 7, 'standalone');
    expect(await claim({ token: 'holdfast:mine', fence: 7 })).toEqual([0, expect.any(String)]);
    expect(await holder()).toBeNull();
  });
});

describe('a TTL above maxTtl', () => {
  const tooLong = (ttlMs: number): LockConfigurationError =>
    new LockConfigurationError(
      `A TTL of ${String(ttlMs)} ms is longer than "restartGuard.maxTtl", 5000 ms: a restarted server would forget it ` +
        'too early. Give a shorter "ttl" (it is renewed for as long as the lock is held), or a longer "maxTtl".',
    );
  const restartGuard = { maxTtl: '5s', bootstrap: true } as const;

  it('is refused as a default when the service is made', () => {
    const make = (): unknown =>
      new LockService({ redis: 'redis://127.0.0.1:1', restartGuard, ttl: 5_001 });
    expect(make).toThrow(tooLong(5_001));
  });

  it('is refused as the default of 30 s, too', () => {
    const make = (): unknown => new LockService({ redis: 'redis://127.0.0.1:1', restartGuard });
    expect(make).toThrow(tooLong(30_000));
  });

  it('is refused of a call, of a renewal and of a decorated method, and up to it all is well', async () => {
    const server = await start();
    const locks = await opened({ redis: server.url, restartGuard });
    await expect(locks.acquire('key', { ttl: '6s' })).rejects.toThrow(tooLong(6_000));
    await expect(locks.run('key', { ttl: '6s' }, () => 'ran')).rejects.toThrow(tooLong(6_000));

    const lock = await locks.acquire('key', { ttl: '5s' });
    await expect(lock.extend('6s')).rejects.toThrow(tooLong(6_000));
    await lock.extend('5s');
    expect(lock.isHeld).toBe(true);
    await lock.release();

    class TooLong {
      @WithLock('key', { ttl: '6s' })
      async work(): Promise<string> {
        return 'ran';
      }
    }
    class JustSo {
      @WithLock('key', { ttl: '5s' })
      async work(): Promise<string> {
        return 'ran';
      }
    }
    const { message } = tooLong(6_000);
    expect(() => locks.bind(new TooLong())).toThrow(
      new LockConfigurationError(`@WithLock on TooLong.work: ${message}`),
    );
    expect(await locks.bind(new JustSo()).work()).toBe('ran');
  });
});

describe('a server for which the guard is impossible', () => {
  const restartGuard = { maxTtl: '5s', bootstrap: true } as const;

  it('is one that may evict locks: refused at the start, and without the guard warned of', async () => {
    const server = await start({ config: { 'maxmemory-policy': 'volatile-lru' } });
    await expect(service({ redis: server.url, restartGuard }).open()).rejects.toThrow(
      new LockConfigurationError(
        `Redis at 127.0.0.1:${String(server.port)} has maxmemory-policy "volatile-lru": when memory is full it can evict locks that ` +
          'are held. "restartGuard" cannot see that. Set "noeviction", or leave the guard out.',
      ),
    );
    expect(warnings).toEqual([]);
    const locks = await opened({ redis: server.url });
    expect(warnings).toEqual([expect.stringMatching(/volatile-lru.*Set "noeviction", or give/)]);
    await (await locks.acquire('key')).release();
  });

  it('is one whose user must not ask INFO: this is said at the start', async () => {
    const server = await start();
    await server.command('ACL', 'SETUSER', 'modest', 'on', '>s3cret', '~*', '&*', '+@all', '-info');
    const redis = `redis://modest:s3cret@127.0.0.1:${String(server.port)}`;
    // ioredis prints that it cannot ask for the state of the server either.
    const print = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
    ends.push(async () => print.mockRestore());
    const failure: unknown = await service({ redis, restartGuard })
      .open()
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(LockConfigurationError);
    const { message } = failure as Error;
    expect(message).toMatch(
      /^"restartGuard" cannot see whether Redis at 127\.0\.0\.1:\d+ was restarted: .*Allow the Redis user the command INFO, in scripts too, or leave the guard out\.$/s,
    );
    expect(message).not.toContain('s3cret');
    // What does not need it works.
    const locks = await opened({ redis });
    await (await locks.acquire('key')).release();
  });

  it('is told of when it comes, too, where it was not there at the start', async () => {
    const port = await freePort();
    await opened({ redis: `redis://127.0.0.1:${String(port)}`, restartGuard });
    await start({ port, config: { 'maxmemory-policy': 'volatile-lru' } });
    await eventually(() => expect(warnings.join('\n')).toContain('volatile-lru'), {
      withinMs: 3_000,
    });
  });

  it('does not keep connections open after it was refused', async () => {
    const [well, evicting] = [
      await start(),
      await start({ config: { 'maxmemory-policy': 'allkeys-lru' } }),
    ];
    const locks = service({ redis: [well.url, evicting.url, 'redis://127.0.0.1:1'], restartGuard });
    await expect(locks.open()).rejects.toThrow(LockConfigurationError);
    await eventually(async () => {
      const clients = String(await well.command('CLIENT', 'LIST'));
      expect(clients).not.toContain('name=holdfast');
    });
  });
});

describe('the key that tells a restart', () => {
  it('has no TTL, and stands beside the locks of its keyPrefix', async () => {
    const server = await start();
    const restartGuard = { maxTtl: '5s', bootstrap: true } as const;
    await opened({ redis: server.url, restartGuard });
    expect(await server.namesInUse()).toEqual([EPOCH]);
    expect(await server.command('PTTL', EPOCH)).toBe(-1);

    await opened({ redis: server.url, restartGuard, keyPrefix: 'jobs:' });
    expect(await server.namesInUse()).toEqual(['jobs:{epoch}', EPOCH].toSorted());
  });

  it('is there after a quarantine as well, still without a TTL', async () => {
    const server = await start();
    const locks = await opened({ redis: server.url, restartGuard: { maxTtl: '60s' } });
    await outage(locks);
    expect(await server.command('PTTL', EPOCH)).toBe(-1);
  });

  it('has a name that no lock of any key can have', async () => {
    const locks = service({ store: 'memory' });
    await expect(locks.acquire('{epoch}')).rejects.toThrow(LockKeyError);
    const text = fc.string({ unit: 'grapheme', minLength: 1 });
    const key = text.filter((each) => !/[{}]/.test(each));
    fc.assert(
      fc.property(fc.constantFrom('lock:', '', '{app}:', 'epoch'), key, (prefix, each) => {
        expect(Object.values(keyNames(prefix)(each))).not.toContain(`${prefix}{epoch}`);
      }),
    );
  });
});
