import type { TlsOptions } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Cluster, type RedisOptions } from 'ioredis';
import { LockService, type AcquireOptions, type LockModuleOptions } from 'nestjs-holdfast';
import { AUTHORITY, ELSEWHERE, EXPIRED, VALID } from '../support/certificates.js';
import { detailOf } from '../support/detail.js';
import { freePort } from '../support/free-port.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisServer } from '../support/redis-server.js';
import { tlsProxy } from '../support/tls-proxy.js';

let redis: RedisServer;
let ends: (() => unknown)[] = [];

beforeAll(async () => {
  Logger.overrideLogger(false);
  redis = await RedisServer.start();
});

afterEach(async () => {
  for (const end of ends.toReversed()) await end();
  ends = [];
});

afterAll(() => redis.stop());

/** Redis behind TLS; resolves with its port. */
async function startTls(options: TlsOptions): Promise<number> {
  const proxy = await tlsProxy(redis.port, options);
  ends.push(proxy.stop);
  return proxy.port;
}

/** What a call says; `'acquired'` if nothing went wrong. */
async function outcomeAt(
  location: LockModuleOptions['redis'],
  { wait = 0 }: AcquireOptions = {},
): Promise<string> {
  const locks = new LockService({ redis: location, nodeTimeout: 1_000 });
  ends.push(() => locks.shutdown(0));
  try {
    await (await locks.acquire('key', { wait })).release();
    return 'acquired';
  } catch (error) {
    return detailOf(error);
  }
}

type Tls = NonNullable<RedisOptions['tls']>;

const withTls = (port: number, tls: Tls): RedisOptions => ({ host: '127.0.0.1', port, tls });

const cluster = (node: RedisOptions): Cluster => {
  const { host, port, ...redisOptions } = node;
  return new Cluster([{ host, port }], { lazyConnect: true, redisOptions });
};

const CASES: readonly [string, TlsOptions, Tls, readonly string[]][] = [
  [
    'is not trusted',
    VALID,
    {},
    ['unable to verify the first certificate', 'NODE_EXTRA_CA_CERTS', '"tls: { ca }"'],
  ],
  ['has expired', EXPIRED, { ca: AUTHORITY }, ['certificate has expired', 'renew']],
  [
    'is for another host name',
    ELSEWHERE,
    { ca: AUTHORITY },
    ["does not match certificate's altnames", 'host name', '"tls: { servername }"'],
  ],
  [
    'of the client is missing',
    { ...VALID, ca: AUTHORITY, requestCert: true },
    { ca: AUTHORITY },
    ['certificate required', '"tls: { cert, key }"'],
  ],
];

describe.each([
  ['one server', (node: RedisOptions) => node],
  ['a Cluster', cluster],
])('HF-34: a call to %s whose TLS certificate', (_, at) => {
  it.each(CASES)('%s is told so, and not to do without TLS', async (_what, server, tls, says) => {
    const detail = await outcomeAt(at(withTls(await startTls(server), tls)));
    for (const part of says) expect(detail).toContain(part);
    expect(detail).not.toContain('redis://');
  });
});

it('a certificate of an authority that is given is trusted', async () => {
  const port = await startTls(VALID);
  expect(await outcomeAt(withTls(port, { ca: AUTHORITY }))).toBe('acquired');
});

describe('a call to a Cluster of which no node can be asked says why:', () => {
  it('nobody listens', async () => {
    const port = await freePort();
    expect(await outcomeAt(cluster({ host: '127.0.0.1', port }))).toContain(
      `connect ECONNREFUSED 127.0.0.1:${String(port)}`,
    );
  });

  it('it is no Cluster', async () => {
    expect(await outcomeAt(cluster({ host: '127.0.0.1', port: redis.port }))).toContain(
      'ERR This instance has cluster support disabled',
    );
  });

  it('the password is wrong, which ends the call at once', async () => {
    const password = 'another-secret';
    const began = performance.now();
    const detail = await outcomeAt(
      cluster({ host: '127.0.0.1', port: redis.port, username: 'nobody', password }),
      { wait: '20s' },
    );
    expect(detail).toMatch(/\(error\): .* WRONGPASS/);
    expect(detail).not.toContain(password);
    expect(performance.now() - began).toBeLessThan(10_000);
  });
});

describe('the URL of one node of a Cluster', () => {
  let nodes: RedisCluster;
  let logged: string[];

  beforeAll(async () => {
    nodes = await RedisCluster.start();
  }, 60_000);

  beforeEach(() => {
    logged = [];
    const log = (message: unknown): void => void logged.push(String(message));
    Logger.overrideLogger({ log, error: log, warn: log });
  });

  afterEach(() => {
    Logger.overrideLogger(false);
  });

  afterAll(() => nodes.stop());

  it('is reported by the log, by health and by calls, with what to give instead', async () => {
    const REMEDY = 'Give a Cluster client';
    for (const { url } of nodes.nodes) {
      const locks = new LockService({ redis: url });
      ends.push(() => locks.shutdown(0));
      await locks.open();
      expect(logged.splice(0)).toEqual([expect.stringContaining(REMEDY)]);
      const keys = Array.from({ length: 20 }, (_, i) => `key:${String(i)}`);
      const outcomes = await Promise.allSettled(
        keys.map((key) => locks.acquire(key, { wait: '20s' })),
      );
      const problems = outcomes.flatMap((each) =>
        each.status === 'rejected' ? [detailOf(each.reason)] : [],
      );
      expect(await locks.health()).toMatchObject({
        hasQuorum: false,
        nodes: [{ problem: expect.stringContaining(REMEDY) }],
      });
      expect(problems.length).toBeGreaterThan(1);
      for (const problem of problems) expect(problem).toContain(REMEDY);
    }
  });

  it('is right where the prefix puts all keys into a slot of that node', async () => {
    const { url } = await nodes.masterOf('{app}:');
    const locks = new LockService({ redis: url, keyPrefix: '{app}:' });
    ends.push(() => locks.shutdown(0));
    await locks.open();
    expect((await locks.acquire(['a', 'b'])).isHeld).toBe(true);
    expect(await locks.health()).toMatchObject({ hasQuorum: true });
    expect(logged).toEqual([]);
  });
});
