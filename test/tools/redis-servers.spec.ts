import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import calculateSlot from 'cluster-key-slot';
import { RedisServers, type RedisServer as ExaminedServer } from 'nestjs-holdfast/tools';
import { IoredisSingle } from '../../lib/store/redis/client/ioredis/ioredis-client.js';
import { expectNoOpenHandles } from '../support/no-leaks.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisServer } from '../support/redis-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const closings: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close();
});

async function startServer(): Promise<RedisServer> {
  const server = await RedisServer.start();
  closings.push(() => server.stop());
  return server;
}

interface Where {
  readonly ports: readonly number[];
  readonly isCluster?: boolean;
  readonly keyPrefix?: string;
  readonly timeLimitMs?: number;
}

const serversAt = ({ ports, isCluster = false, ...how }: Where) =>
  new RedisServers({
    urls: ports.map((port) => `redis://127.0.0.1:${String(port)}`),
    ...{ isCluster, keyPrefix: 'lock:', timeLimitMs: 20_000, ...how },
  });

/** Connects to one server, and tries to send a message there after something happens. */
const messageAfter = (where: Where, happens: () => unknown): Promise<string | undefined> =>
  serversAt(where).connected(async ({ servers: [server] }) => {
    await happens();
    return server?.tryMessage();
  });

describe('the connections to servers that are examined', () => {
  it('are closed when the work is done, and when it fails', async () => {
    const { port } = await startServer();
    await expectNoOpenHandles(async () => {
      const servers = serversAt({ ports: [port] });
      expect(await servers.connected(async (reached) => reached.servers.length)).toBe(1);
      const failing = servers.connected(() => Promise.reject(new Error('no more')));
      await expect(failing).rejects.toThrow('no more');
    });
  });
});

describe('a message that a server sends to itself', () => {
  it('arrives', async () => {
    const { port } = await startServer();
    expect(await messageAfter({ ports: [port] }, () => undefined)).toBeUndefined();
  });

  it('does not arrive at a server that does not answer, and is waited for no longer than the limit', async () => {
    const server = await startServer();
    const where = { ports: [server.port], timeLimitMs: 2_000 };
    expect(await messageAfter(where, () => server.freeze())).toBe('none within 2000 ms');
  });

  it('does not arrive where a proxy leads each connection to another server', async () => {
    const [one, other] = [await startServer(), await startServer()];
    const proxy = await TcpProxy.start(one.port);
    closings.push(() => proxy.stop());
    const where = { ports: [proxy.port], timeLimitMs: 2_000 };
    expect(await messageAfter(where, () => proxy.leadTo(other.port))).toBe('none within 2000 ms');
  });

  it('is not sent where no connection can be opened for it, and the reason is the result', async () => {
    const { port } = await startServer();
    const opening = jest.spyOn(IoredisSingle.prototype, 'openSubscriber');
    closings.push(() => opening.mockRestore());
    opening.mockImplementation(() => {
      throw new Error('no master is known yet');
    });
    expect(await messageAfter({ ports: [port] }, () => undefined)).toBe('no master is known yet');
  });
});

describe('the names of a trial on a Cluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await RedisCluster.start();
  });
  afterAll(() => cluster.stop());

  /** Looks at all masters, with a prefix. */
  const atMasters = <T>(
    keyPrefix: string,
    work: (server: ExaminedServer) => Promise<T>,
  ): Promise<readonly T[]> => {
    const ports = cluster.nodes.map(({ port }) => port);
    const examined = serversAt({ ports, isCluster: true, keyPrefix });
    return examined.connected(({ servers }) => Promise.all(servers.map(work)));
  };

  /** At which master the names of one trial are. */
  async function placeOf(server: ExaminedServer): Promise<string> {
    const main = server.trialNames()?.main;
    if (main === undefined) return 'nowhere';
    return `127.0.0.1:${String((await cluster.masterOf(main)).port)}`;
  }

  it('are at the master that is tried, however often', async () => {
    const places = await atMasters('lock:', async (server) => {
      const found = await Promise.all([1, 2, 3, 4, 5].map(() => placeOf(server)));
      return { name: server.name, found: new Set(found) };
    });
    expect(places).toHaveLength(3);
    for (const { name, found } of places) expect([...found]).toEqual([name]);
  });

  it('are those over whose channel a message arrives at each master', async () => {
    const problems = await atMasters('lock:', (server) => server.tryMessage(server.trialNames()));
    expect(problems).toStrictEqual([undefined, undefined, undefined]);
  });

  it('are at one master only where the prefix puts all keys into one slot', async () => {
    const names = await atMasters('{shop}:', async (server) => server.trialNames()?.main);
    const found = names.filter((name) => name !== undefined);
    expect(found.map((name) => calculateSlot(name))).toEqual([calculateSlot('shop')]);
  });
});
