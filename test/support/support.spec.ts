import { spawn } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { findRedisServer } from '../../scripts/redis-server.mjs';
import { compiledProject } from './compiled.js';
import { deferred, eventually, until } from './eventually.js';
import { expectNoOpenHandles, watchHandles } from './no-leaks.js';
import { RedisCluster } from './redis-cluster.js';
import { RedisSentinel } from './redis-sentinel.js';
import { RedisServer } from './redis-server.js';
import { TcpProxy } from './tcp-proxy.js';

const handles = watchHandles();
const clients: (Redis | Cluster)[] = [];

type ClientOptions = Pick<
  RedisOptions,
  'retryStrategy' | 'enableReadyCheck' | 'disableClientInfo' | 'protocol'
>;

function clientOf(port: number, options: ClientOptions = {}): Redis {
  return remember(new Redis({ host: '127.0.0.1', port, ...options }));
}

function remember<T extends Redis | Cluster>(client: T): T {
  client.on('error', () => undefined);
  clients.push(client);
  return client;
}

/** Resolves to what is known of the promise now, once everything due at this moment has happened. */
async function stateAfterRoundTrip(
  promise: Promise<unknown>,
  server: RedisServer,
): Promise<string> {
  let state = 'pending';
  promise.then(
    () => (state = 'fulfilled'),
    () => (state = 'rejected'),
  );
  await server.command('PING');
  return state;
}

function processExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

afterEach(() => {
  for (const client of clients.splice(0)) client.disconnect();
});

afterAll(() => handles.expectNoneOpen());

describe('RedisServer', () => {
  let server: RedisServer;

  beforeAll(async () => {
    server = await RedisServer.start();
  });

  afterAll(() => server.stop());

  it('answers on a port of its own that is not 6379', async () => {
    expect(server.port).not.toBe(6379);
    expect(await remember(new Redis(server.url)).ping()).toBe('PONG');
  });

  it('keeps nothing on disk', async () => {
    expect(await server.command('CONFIG', 'GET', 'save')).toEqual(['save', '']);
    expect(await server.command('CONFIG', 'GET', 'appendonly')).toEqual(['appendonly', 'no']);
  });

  it('takes configuration and an explicit port, and says that a port is taken', async () => {
    const other = await RedisServer.start({ config: { databases: '3' } });
    expect(await other.command('CONFIG', 'GET', 'databases')).toEqual(['databases', '3']);
    await expect(RedisServer.start({ port: other.port })).rejects.toThrow(
      /in use|Failed listening/i,
    );
    await other.stop();
    const again = await RedisServer.start({ port: other.port });
    expect(again.port).toBe(other.port);
    await again.stop();
  });

  it('passes on the reason of a start that failed', async () => {
    await expect(RedisServer.start({ config: { 'no-such-option': '1' } })).rejects.toThrow(
      /no-such-option/,
    );
  });

  it('starts a replica that has its master’s data', async () => {
    await server.command('SET', 'replicated', 'yes');
    const replica = await RedisServer.start({ replicaOf: server });
    expect(await replica.command('GET', 'replicated')).toBe('yes');
    await expect(replica.command('SET', 'replicated', 'no')).rejects.toThrow(/READONLY/);
    await replica.stop();
  });

  it('is gone after kill(), and empty on the same port after restart()', async () => {
    await server.command('SET', 'key', 'value');
    const { pid } = server;
    await server.kill();
    expect(server.isRunning).toBe(false);
    expect(processExists(pid)).toBe(false);
    await expect(server.command('PING')).rejects.toThrow();

    await server.restart();
    expect(server.isRunning).toBe(true);
    expect(server.pid).not.toBe(pid);
    expect(await server.command('DBSIZE')).toBe(0);
  });

  it('is reached again after restart() by a client that reconnects', async () => {
    const client = clientOf(server.port, { retryStrategy: () => 10 });
    await client.set('key', 'value');
    await server.restart();
    expect(await client.get('key')).toBeNull();
  });

  it('answers nothing while frozen and everything after thaw()', async () => {
    const bystander = await RedisServer.start();
    const client = clientOf(server.port);
    await client.ping();
    server.freeze();
    const answer = client.set('frozen', 'yes');
    expect(await stateAfterRoundTrip(answer, bystander)).toBe('pending');
    server.thaw();
    expect(await answer).toBe('OK');
    await bystander.stop();
  });

  it('stops while frozen, leaves neither process nor files, and stops twice', async () => {
    const frozen = await RedisServer.start();
    const folder = String(((await frozen.command('CONFIG', 'GET', 'dir')) as string[])[1]);
    expect(existsSync(folder)).toBe(true);
    frozen.freeze();
    await frozen.stop();
    await frozen.stop();
    expect(processExists(frozen.pid)).toBe(false);
    expect(existsSync(folder)).toBe(false);
  });

  it('notices that somebody else killed it', async () => {
    const victim = await RedisServer.start();
    process.kill(victim.pid, 'SIGKILL');
    await eventually(() => !victim.isRunning);
    await victim.stop();
  });

  it('counts the commands of clients without its own', async () => {
    const client = clientOf(server.port, {
      enableReadyCheck: false,
      disableClientInfo: true,
      protocol: 2,
    });
    await client.ping();
    const countBefore = await server.commandCount();
    const stats = await server.commandsDuring(async () => {
      await client.set('a', '1');
      await client.get('a');
      await client.get('b');
      await client.client('GETNAME');
      await server.command('CLIENT', 'GETNAME');
      await server.command('GET', 'a');
    });
    expect(Object.fromEntries(stats)).toEqual({ set: 1, get: 2, 'client|getname': 1 });
    expect((await server.commandCount()) - countBefore).toBe(4);
  });

  it('records the commands clients sent, without those scripts made', async () => {
    const client = clientOf(server.port, {
      enableReadyCheck: false,
      disableClientInfo: true,
      protocol: 2,
    });
    await client.ping();
    const script = "return redis.call('incr', KEYS[1])";
    const commands = await server.commandsSentDuring(async () => {
      await client.set('a', '1');
      await client.eval(script, 1, 'a');
    });
    expect(commands).toEqual([
      ['set', 'a', '1'],
      ['eval', script, '1', 'a'],
    ]);
    const stats = await server.commandsDuring(() => client.eval(script, 1, 'a'));
    expect(Object.fromEntries(stats)).toEqual({ eval: 1, incr: 1 });
  });

  it('starts many at once, each on its own port', async () => {
    const servers = await Promise.all(Array.from({ length: 6 }, () => RedisServer.start()));
    expect(new Set(servers.map(({ port }) => port)).size).toBe(6);
    await Promise.all(servers.map((each) => each.stop()));
  });
});

describe('RedisServer in a process that is killed', () => {
  const script = `
    import { RedisServer } from './test/support/redis-server.js';
    const server = await RedisServer.start();
    const [, folder] = await server.command('CONFIG', 'GET', 'dir');
    process.stdin.resume();
    console.log(JSON.stringify({ port: server.port, folder }));
  `;

  it.each(['running', 'frozen'])('ends with it, and its files too (%s)', async (state) => {
    const parent = spawn(process.execPath, ['--input-type=module', '-e', script], {
      cwd: compiledProject(),
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const [line] = (await until(parent.stdout, 'data')) as [Buffer];
    const { port, folder } = JSON.parse(line.toString()) as { port: number; folder: string };
    const client = clientOf(port, { retryStrategy: () => null });
    expect(await client.info('server')).toContain('process_id');
    if (state === 'frozen') {
      const pid = Number(/process_id:(\d+)/.exec(await client.info('server'))?.[1]);
      process.kill(pid, 'SIGSTOP');
    }

    const disconnected = until(client, 'end');
    parent.kill('SIGKILL');
    await disconnected;
    await eventually(() => !existsSync(folder));
  });
});

describe('findRedisServer', () => {
  const configured = process.env.REDIS_SERVER_BIN;

  afterEach(() => {
    if (configured === undefined) delete process.env.REDIS_SERVER_BIN;
    else process.env.REDIS_SERVER_BIN = configured;
  });

  it('takes $REDIS_SERVER_BIN before the PATH, and says so if it cannot be run', () => {
    process.env.REDIS_SERVER_BIN = process.execPath;
    expect(findRedisServer()).toBe(process.execPath);
    process.env.REDIS_SERVER_BIN = '/no/such/program';
    expect(() => findRedisServer()).toThrow('REDIS_SERVER_BIN is "/no/such/program"');
  });
});

describe('RedisCluster', () => {
  let cluster: RedisCluster;

  beforeAll(async () => {
    cluster = await RedisCluster.start();
  });

  afterAll(() => cluster.stop());

  it('serves keys from all masters to an ioredis Cluster', async () => {
    const client = remember(new Cluster(cluster.startupNodes));
    const keys = Array.from({ length: 60 }, (_, index) => `key:${index}`);
    await Promise.all(keys.map((key) => client.set(key, `value of ${key}`)));
    expect(await Promise.all(keys.map((key) => client.get(key)))).toEqual(
      keys.map((key) => `value of ${key}`),
    );
    const sizes = await Promise.all(
      cluster.nodes.slice(0, 3).map((node) => node.command('DBSIZE')),
    );
    for (const size of sizes) expect(size).toBeGreaterThan(0);
    expect(sizes.reduce<number>((sum, size) => sum + Number(size), 0)).toBe(60);
  });

  it('names the master of a key', async () => {
    const key = '{order:7}:lock';
    const master = await cluster.masterOf(key);
    expect(await master.command('SET', key, '1')).toBe('OK');
    for (const node of cluster.nodes.slice(0, 3)) {
      if (node !== master) await expect(node.command('SET', key, '1')).rejects.toThrow(/MOVED/);
    }
  });

  it('moves a slot key by key, while clients use it', async () => {
    const client = remember(new Cluster(cluster.startupNodes));
    const keys = ['{moving}:a', '{moving}:b'];
    for (const key of keys) await client.set(key, `value of ${key}`);
    const former = await cluster.masterOf('{moving}');
    const moved = cluster.moveSlot('{moving}', 50);
    await eventually(() =>
      former.command('MGET', ...keys).then(
        () => false,
        (error: unknown) => String(error).includes('TRYAGAIN'),
      ),
    );
    const oneByOne = await Promise.all(keys.map((key) => client.get(key)));
    expect(oneByOne).toEqual(keys.map((key) => `value of ${key}`));
    await moved;
    const master = await cluster.masterOf('{moving}');
    expect(master).not.toBe(former);
    expect(await master.command('MGET', ...keys)).toEqual(oneByOne);
    await expect(former.command('GET', '{moving}:a')).rejects.toThrow(/MOVED/);
  });

  it('refuses a command over several slots', async () => {
    const client = remember(new Cluster(cluster.startupNodes));
    await expect(client.mget('a', 'b')).rejects.toThrow();
  });
});

/** A cluster of its own: it loses a node. */
describe('RedisCluster, when a master dies', () => {
  let cluster: RedisCluster;

  beforeAll(async () => {
    cluster = await RedisCluster.start({ masters: 3, replicas: 1 });
  });

  afterAll(() => cluster.stop());

  it('promotes the replica of a killed master', async () => {
    const [first] = cluster.nodes;
    const replica = cluster.nodes[3];
    const client = remember(new Cluster(cluster.startupNodes));
    await client.set('x', '1');
    await first!.kill();
    await eventually(
      async () => {
        const info = await replica!.command('CLUSTER', 'INFO');
        return (
          String(info).includes('cluster_state:ok') &&
          String(await replica!.command('ROLE')).startsWith('master')
        );
      },
      { withinMs: 20_000 },
    );
  });
});

describe('RedisSentinel', () => {
  it('fails over to the replica, and ioredis follows', async () => {
    const group = await RedisSentinel.start();
    const client = remember(
      new Redis({
        sentinels: group.sentinels,
        name: group.name,
        sentinelRetryStrategy: () => 50,
        retryStrategy: () => 50,
      }),
    );
    const { master, replica } = group;
    await client.set('key', 'before');
    expect(await client.wait(1, 5000)).toBe(1);

    await group.failOver();

    expect(group.master).toBe(replica);
    expect(group.replica).toBe(master);
    expect(master.isRunning).toBe(false);
    expect(await client.get('key')).toBe('before');
    expect(await client.set('key', 'after')).toBe('OK');
    expect(await replica.command('GET', 'key')).toBe('after');

    await group.rejoin();
    await group.isComplete();
    expect(await group.replica.command('GET', 'key')).toBe('after');
    client.disconnect();
    await group.stop();
    for (const server of [master, replica, ...group.sentinelServers]) {
      expect(processExists(server.pid)).toBe(false);
    }
  }, 150_000);
});

describe('TcpProxy', () => {
  let server: RedisServer;
  let proxy: TcpProxy;

  beforeAll(async () => {
    server = await RedisServer.start();
  });

  beforeEach(async () => {
    proxy = await TcpProxy.start(server.port);
    await server.command('FLUSHALL');
  });

  afterEach(() => proxy.stop());
  afterAll(() => server.stop());

  it('is not noticed as long as nothing is asked of it', async () => {
    const client = clientOf(proxy.port);
    const large = 'x'.repeat(3_000_000);
    await client.set('key', large);
    expect(await client.get('key')).toBe(large);
  });

  it.each([
    ['both', 80],
    ['to-server', 40],
    ['to-client', 40],
  ] as const)('delays %s, in order', async (direction, roundTripMs) => {
    const client = clientOf(proxy.port);
    await client.ping();
    proxy.delay(40, direction);
    const begin = performance.now();
    const lengths = await Promise.all(['a', 'b', 'c'].map((value) => client.rpush('list', value)));
    const tookMs = performance.now() - begin;
    expect(lengths).toEqual([1, 2, 3]);
    expect(tookMs).toBeGreaterThanOrEqual(roundTripMs - 2);
    proxy.delay(0);
    expect(await client.lrange('list', 0, -1)).toEqual(['a', 'b', 'c']);
  });

  it('holds commands back while paused and delivers them on resume()', async () => {
    const client = clientOf(proxy.port);
    await client.ping();
    proxy.pause();
    const sent = proxy.whenClientSends('held');
    const answer = client.set('held', 'yes');
    await sent;
    expect(await stateAfterRoundTrip(answer, server)).toBe('pending');
    expect(await server.command('GET', 'held')).toBeNull();
    proxy.resume();
    expect(await answer).toBe('OK');
  });

  it('loses the reply of a command that the server has run', async () => {
    const client = clientOf(proxy.port, { retryStrategy: () => null });
    await client.ping();
    proxy.pause('to-client');
    const answer = client.set('run', 'yes');
    const rejected = expect(answer).rejects.toThrow();
    await eventually(async () => (await server.command('GET', 'run')) === 'yes');
    proxy.cut();
    await rejected;
  });

  it('delivers what a client sent before it went away', async () => {
    const client = clientOf(proxy.port, { retryStrategy: () => null });
    await client.ping();
    proxy.pause('to-server');
    const sent = proxy.whenClientSends('late');
    client.set('late', 'yes').catch(() => undefined);
    await sent;
    client.disconnect();
    expect(await server.command('GET', 'late')).toBeNull();
    proxy.resume();
    await eventually(async () => (await server.command('GET', 'late')) === 'yes');
  });

  it('cuts connections, and accepts the next', async () => {
    const client = clientOf(proxy.port, { retryStrategy: () => 1 });
    await client.ping();
    const closed = until(client, 'close');
    proxy.cut();
    await closed;
    expect(await client.ping()).toBe('PONG');
  });

  it('refuses new connections and leaves those that stand', async () => {
    const standing = clientOf(proxy.port);
    await standing.ping();
    proxy.refuse();
    const refused = connect(proxy.port, '127.0.0.1');
    refused.on('error', () => undefined);
    await until(refused, 'close');
    expect(await standing.ping()).toBe('PONG');
    proxy.accept();
    expect(await clientOf(proxy.port).ping()).toBe('PONG');
  });

  it('passes on that the server was killed', async () => {
    const other = await RedisServer.start();
    const toOther = await TcpProxy.start(other.port);
    const client = clientOf(toOther.port, { retryStrategy: () => null });
    await client.ping();
    const ended = until(client, 'end');
    await other.kill();
    await ended;
    await toOther.stop();
    await other.stop();
  });

  it('recognises bytes that arrive in pieces', async () => {
    const sent = proxy.whenClientSends('whole');
    const socket = connect(proxy.port, '127.0.0.1');
    await until(socket, 'connect');
    socket.setNoDelay(true);
    socket.write('*2\r\n$4\r\nECHO\r\n$5\r\nwh');
    await server.command('PING');
    expect(await stateAfterRoundTrip(sent, server)).toBe('pending');
    socket.write('ole\r\n');
    await sent;
    socket.destroy();
  });

  it('stops while it holds and delays, with nothing left open', async () => {
    await expectNoOpenHandles(async () => {
      const other = await TcpProxy.start(server.port);
      const client = clientOf(other.port, { retryStrategy: () => null });
      await client.ping();
      other.delay(60_000);
      client.set('never', 'arrives').catch(() => undefined);
      await other.whenClientSends('never');
      other.pause();
      client.set('nor', 'this').catch(() => undefined);
      await other.whenClientSends('nor');
      const ended = until(client, 'end');
      await other.stop();
      await ended;
    });
  });
});

describe('eventually', () => {
  it('returns what the check returned once it stops throwing', async () => {
    let calls = 0;
    const result = await eventually(() => {
      calls += 1;
      if (calls < 3) throw new Error('not yet');
      return `after ${calls}`;
    });
    expect(result).toBe('after 3');
  });

  it('goes on while the check is false or null', async () => {
    const answers = [false, null, 7];
    expect(await eventually(() => answers.shift() as number | false | null)).toBe(7);
  });

  it('rethrows the last error', async () => {
    let calls = 0;
    const check = (): never => {
      calls += 1;
      throw new Error(`error ${calls}`);
    };
    await expect(eventually(check, { withinMs: 50 })).rejects.toThrow(`error`);
    expect(calls).toBeGreaterThan(1);
    await expect(eventually(() => false, { withinMs: 0 })).rejects.toThrow('still returned false');
  });
});

describe('until and deferred', () => {
  it('wait for the next event, and for the test', async () => {
    const emitter = new EventEmitter();
    const event = until(emitter, 'done');
    emitter.emit('done', 1, 'two');
    expect(await event).toEqual([1, 'two']);

    const word = deferred<string>();
    word.resolve('said');
    expect(await word.promise).toBe('said');
    const refusal = deferred();
    refusal.reject(new Error('no'));
    await expect(refusal.promise).rejects.toThrow('no');
  });
});

describe('expectNoOpenHandles', () => {
  /** What these leave open is never closed, so there is nothing to wait for. */
  const SOON = { withinMs: 200 };

  it('passes where everything is closed', async () => {
    await expectNoOpenHandles(async () => {
      const redis = await RedisServer.start();
      const client = new Redis(redis.port);
      await client.ping();
      client.disconnect();
      await redis.stop();
    });
  });

  it('reports a timer and where it was set', async () => {
    let timer: NodeJS.Timeout | undefined;
    const check = expectNoOpenHandles(async () => {
      timer = setTimeout(() => undefined, 60_000);
    }, SOON);
    await expect(check.finally(() => clearTimeout(timer))).rejects.toThrow(
      /^Left open: Timeout opened .*support\.spec\.ts/,
    );
  });

  it('reports a connection', async () => {
    const redis = await RedisServer.start();
    const client = new Redis(redis.port);
    const check = expectNoOpenHandles(async () => {
      const another = remember(client.duplicate());
      await another.ping();
    }, SOON);
    await expect(check).rejects.toThrow(/^Left open: TCPWRAP opened .*ioredis/);
    client.disconnect();
    await redis.stop();
  });

  it('leaves alone what was open before, and what does not keep the process alive', async () => {
    const timer = setTimeout(() => undefined, 60_000);
    await expectNoOpenHandles(async () => {
      setTimeout(() => undefined, 60_000).unref();
    });
    clearTimeout(timer);
  });
});
