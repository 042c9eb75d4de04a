import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { LockModuleOptions, LockService } from 'nestjs-holdfast';
import { AUTHORITY } from '../../support/certificates.js';
import { eventually } from '../../support/eventually.js';
import { RedisCluster } from '../../support/redis-cluster.js';
import { RedisServer } from '../../support/redis-server.js';
import { tlsProxy } from '../../support/tls-proxy.js';
import { azure, elastiCache, memorystore, token, upstash, type Server } from './managed.js';
import { recipesOf } from './recipe-pages.js';
import { Services } from './services.js';

const services = new Services();
/** Backwards, so that what uses a server ends before it. */
let closings: (() => unknown)[] = [];

beforeAll(() => {
  Logger.overrideLogger(false); // connections that are cut are the subject here
});

afterEach(async () => {
  await services.closeAll();
  for (const close of closings.reverse()) await close();
  closings = [];
});

const open = ({ redis, ...options }: LockModuleOptions): Promise<LockService> =>
  services.open(redis as string, options);

/** A server behind TLS, as it is reached from outside. */
async function behindTls({ port }: RedisServer): Promise<Server> {
  const proxy = await tlsProxy(port);
  closings.push(proxy.stop);
  return { host: '127.0.0.1', port: proxy.port, tls: { ca: AUTHORITY } };
}

async function start(config: Record<string, string> = {}): Promise<RedisServer> {
  const server = await RedisServer.start({ config });
  closings.push(() => server.stop());
  return server;
}

/** Issues a token: the user can log in with this one only, and its connections are cut. */
async function issue(servers: readonly RedisServer[], user: string, value: string): Promise<void> {
  for (const server of servers) {
    const rights = ['on', 'resetpass', `>${value}`, '~*', '&*', '+@all'];
    await server.command('ACL', 'SETUSER', user, ...rights);
    await server.command('CLIENT', 'KILL', 'USER', user);
  }
  token.value = value;
}

/** Commands, in many slots. */
async function expectUsable(locks: LockService): Promise<void> {
  for (let number = 0; number < 8; number += 1)
    expect(await locks.run(`key:${String(number)}`, { wait: '20s' }, () => 'ran')).toBe('ran');
}

it('the connections are the code of docs/recipes.md', () => {
  expect(recipesOf('managed.ts')).toEqual({ shown: 2, missing: [] });
});

describe('a Cluster behind TLS whose tokens change', () => {
  it('is used with a new token after the old one has ended', async () => {
    const cluster = await RedisCluster.start({ masters: 2 });
    closings.push(() => cluster.stop());
    const [first, second] = await Promise.all(cluster.nodes.map(behindTls));
    // Clients reach the nodes by TLS only.
    for (const [index, place] of [first!, second!].entries()) {
      const node = cluster.nodes[index]!;
      await node.command('CONFIG', 'SET', 'cluster-announce-port', place.port);
      await node.command('ACL', 'SETUSER', 'default', '-eval', '-evalsha');
    }
    await eventually(
      async () => {
        const views = await Promise.all(
          cluster.nodes.map((node) => node.command('CLUSTER', 'NODES')),
        );
        return views.every((view) =>
          [first!, second!].every(({ port }) => String(view).includes(`:${String(port)}@`)),
        );
      },
      { withinMs: 20_000 },
    );
    await issue(cluster.nodes, 'locks', 'first');
    const locks = await open(elastiCache(first!));
    await expectUsable(locks);
    const held = await locks.acquire('held', { ttl: '60s' });
    await issue(cluster.nodes, 'locks', 'second');
    await expectUsable(locks);
    expect(await held.release()).toBe(true);
  });
});

describe('one server', () => {
  it('is used by TLS and a password without a user', async () => {
    const server = await start({ requirepass: 'secret' });
    await expectUsable(await open(memorystore(await behindTls(server), 'secret')));
  });

  it('is used by TLS with a user whose token changes', async () => {
    const server = await start();
    await issue([server], 'object-id', 'first');
    const locks = await open(azure(await behindTls(server), 'object-id'));
    await expectUsable(locks);
    await issue([server], 'object-id', 'second');
    await expectUsable(locks);
  });

  it('is used by a URL with the user and the password', async () => {
    const server = await start({ requirepass: 'secret' });
    const url = `redis://default:secret@127.0.0.1:${String(server.port)}`;
    await expectUsable(await open(upstash(url)));
  });
});
