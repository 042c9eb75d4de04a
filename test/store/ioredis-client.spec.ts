import { describe, expect, it } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { ConnectError } from '../../lib/store/redis/client/connect-problem.js';
import { ClusterProblems } from '../../lib/store/redis/client/ioredis/cluster-problems.js';
import {
  commandClassOf,
  evalShaClass,
} from '../../lib/store/redis/client/ioredis/command-class.js';
import {
  IoredisCluster,
  IoredisSingle,
} from '../../lib/store/redis/client/ioredis/ioredis-client.js';
import { isMockedClient } from '../../lib/store/redis/client/ioredis/ioredis-shape.js';
import { IoredisSubscriber } from '../../lib/store/redis/client/ioredis/ioredis-subscriber.js';
import {
  logsInWith,
  providedLogin,
  statedLogin,
} from '../../lib/store/redis/client/ioredis/login.js';
import type { ClientEvents } from '../../lib/store/redis/client/redis-client.js';
import type { ScriptCall } from '../../lib/store/redis/scripts/script.js';
import { settled, VirtualRuntime } from '../support/virtual-runtime.js';

const ignore = (): void => undefined;
const NO_EVENTS: ClientEvents = {
  ...{ onConnect: ignore, onReady: ignore, onError: ignore },
  ...{ onClose: ignore, onEnd: ignore, onSlots: ignore },
};

describe('a client of ioredis', () => {
  it.each([
    ['idle', 'wait'],
    ['connecting', 'connecting'],
    ['connecting', 'connect'],
    ['connecting', 'reconnecting'],
    ['connecting', 'close'],
    ['ready', 'ready'],
    ['ended', 'end'],
  ])('is %s while it says %s', (state, status) => {
    const cluster = new Cluster([{ host: 'h' }], { lazyConnect: true });
    const client = new IoredisCluster(cluster, NO_EVENTS, new VirtualRuntime());
    Object.assign(cluster, { status });
    expect(client.state).toBe(state);
  });

  it('has sharded channels where its package has them, and tells of each connection', () => {
    let connections = 0;
    const events = { ...NO_EVENTS, onConnect: () => (connections += 1) };
    const cluster = new Cluster([{ host: 'h' }], { lazyConnect: true });
    const client = new IoredisCluster(cluster, events, new VirtualRuntime());
    expect(client.hasShardedChannels).toBe(true);
    cluster.emit('connect');
    expect(connections).toBe(1);
  });

  it('sends requests of the same moment together, and those of the next, too', async () => {
    const calls: string[] = [];
    const stream = { cork: () => calls.push('cork'), uncork: () => calls.push('uncork') };
    const redis = new Redis({ lazyConnect: true });
    const client = new IoredisSingle(redis, NO_EVENTS, () => redis);
    Object.assign(redis, { stream, call: async (name: string) => calls.push(name) });
    const together = ['cork', 'get', 'get', 'uncork'];
    for (const moments of [1, 2]) {
      await Promise.all([client.command('get', 'a'), client.command('get', 'b')]);
      await settled();
      expect(calls).toEqual(Array.from({ length: moments }, () => together).flat());
    }
  });

  it('sends many requests of one moment in several packets', async () => {
    const calls: string[] = [];
    const stream = { cork: () => calls.push('cork'), uncork: () => calls.push('uncork') };
    const redis = new Redis({ lazyConnect: true });
    const client = new IoredisSingle(redis, NO_EVENTS, () => redis);
    Object.assign(redis, { stream, call: async (name: string) => calls.push(name) });
    const large = Array.from({ length: 70 }, String);
    await Promise.all(['a', 'b', 'c'].map((name) => client.command(name, ...large)));
    await settled();
    expect(calls.join(' ')).toBe('cork a b uncork cork c uncork');
  });

  it.each([
    ['is connected, and was not answered', { connecting: false, secureConnecting: true }, true],
    ['is not connected', { connecting: true, secureConnecting: true }, false],
    ['was answered', { connecting: false, secureConnecting: false }, false],
  ])('that asks for TLS and %s hints at a port without TLS: %j', (_, state, hints) => {
    const redis = new Redis({ lazyConnect: true, tls: {} });
    const stream = new TLSSocket(new Socket());
    for (const [name, value] of Object.entries(state))
      Object.defineProperty(stream, name, { value });
    Object.assign(redis, { stream });
    const client = new IoredisSingle(redis, NO_EVENTS, () => redis);
    expect(client.hintAt('not connected within 1000 ms').includes('but not TLS')).toBe(hints);
  });

  it('of a Cluster that it has not reached says so to who wants to listen', () => {
    const cluster = new Cluster([{ host: 'h' }], { lazyConnect: true });
    const client = new IoredisCluster(cluster, NO_EVENTS, new VirtualRuntime());
    const listen = () =>
      client.openSubscriber({ onMessage: ignore, onMoved: ignore, onError: ignore, onEnd: ignore });
    expect(listen).toThrow('no master of the cluster is known yet');
  });

  it('that makes no command of a call cannot be used', () => {
    const mute = { call: ignore } as unknown as Redis;
    expect(() => commandClassOf(mute)).toThrow('the client has made no command');
  });
});

describe('a client of ioredis-mock', () => {
  const own = { shaScripts: {}, customCommands: {}, keyData: {} };

  it.each([
    [true, 'all', own],
    [false, 'one', { keyData: {} }],
    [false, 'none', {}],
  ])('is known (%j) by what only it has: of that a client has %s', (isIt, _, value) => {
    expect(isMockedClient(value)).toBe(isIt);
  });
});

describe('a script, with ioredis,', () => {
  it('has 65,536 arguments at most', () => {
    const EvalSha = evalShaClass(commandClassOf(new Redis({ lazyConnect: true })));
    const call = (length: number): ScriptCall =>
      Array.from({ length }, () => 0) as unknown as ScriptCall;
    expect(new EvalSha('sha', call(65_536)).name).toBe('evalsha');
    expect(() => new EvalSha('sha', call(65_537))).toThrow('at most 65536 arguments');
  });
});

describe('a subscriber with ioredis', () => {
  it('is ready when its client is, and tells of errors', () => {
    const errors: unknown[] = [];
    const redis = new Redis({ lazyConnect: true });
    const subscriber = new IoredisSubscriber(redis, {
      ...{ onMessage: ignore, onMoved: ignore, onEnd: ignore },
      onError: () => errors.push('told'),
    });
    expect(subscriber.isReady).toBe(false);
    Object.assign(redis, { status: 'ready' });
    expect(subscriber.isReady).toBe(true);
    redis.emit('error', new Error('a reply without a request'));
    expect(errors).toEqual(['told']);
  });

  it('hears messages of both kinds of channels, and that a channel has moved', () => {
    const heard: string[] = [];
    const redis = new Redis({ lazyConnect: true });
    new IoredisSubscriber(redis, {
      ...{ onError: ignore, onEnd: ignore, onMoved: () => heard.push('moved') },
      onMessage: (message) => heard.push(message),
    });
    redis.emit('message', 'channel', 'plain');
    redis.emit('smessage', 'channel', 'sharded');
    redis.emit('moved');
    expect(heard).toEqual(['plain', 'sharded', 'moved']);
  });
});

describe('why no node of a Cluster can be asked, with ioredis,', () => {
  const failure = (message: string, lastNodeError?: ConnectError): ConnectError =>
    Object.assign(new Error(message), { lastNodeError });
  const coded = (message: string, code: string): ConnectError =>
    Object.assign(new Error(message), { code });
  const CLOSED = new Error('Connection is closed.');
  const WRONG_HOST = coded('wrong host ', 'HOSTNAME_MISMATCH');

  it.each<[string, ConnectError, string | RegExp]>([
    ['what ioredis says of it', failure('None.'), 'None.'],
    ['what the last node said', failure('None.', new Error('refused')), 'None. refused'],
    ['what was said when it was asked', failure('None.', CLOSED), 'None. before'],
    [
      'what to do about host names',
      failure('None.', WRONG_HOST),
      /^None\. wrong host \(give the Cluster client "dnsLookup: /,
    ],
  ])('is %s', (_, error, expected) => {
    const cluster = new Cluster([{ host: 'h' }], { lazyConnect: true });
    const problems = new ClusterProblems(cluster);
    const node = new Redis({ lazyConnect: true });
    cluster.emit('+node', node);
    node.duplicate().emit('error', new Error('before'));
    const problem = problems.problemOf(error);
    if (typeof expected === 'string') expect(problem).toBe(expected);
    else expect(problem).toMatch(expected);
  });

  it('is nothing of the time before it was ready', () => {
    const cluster = new Cluster([{ host: 'h' }], { lazyConnect: true });
    const problems = new ClusterProblems(cluster);
    const node = new Redis({ lazyConnect: true });
    cluster.emit('+node', node);
    node.duplicate().emit('error', new Error('before'));
    cluster.emit('ready');
    expect(problems.problemOf(failure('None.', CLOSED))).toBe('None. Connection is closed.');
  });
});

describe('a master of a Cluster, with ioredis,', () => {
  it('has received as many bytes as its stream, and none before there is one', () => {
    const redis = new Redis({ lazyConnect: true });
    const cluster = new Cluster([{ host: 'h' }], { lazyConnect: true });
    Object.assign(cluster, { nodes: () => [redis] });
    const client = new IoredisCluster(cluster, NO_EVENTS, new VirtualRuntime());
    const [master] = client.masters();
    expect(master?.arrived).toBe(0);
    Object.assign(redis, { stream: { bytesRead: 7 } });
    expect(master?.arrived).toBe(7);
  });
});

describe('a login, with ioredis,', () => {
  const stated = { username: 'user', password: 'first', sentinelPassword: 'other' };

  it('is what is stated at that moment, also of a copy of the client', () => {
    let now = stated;
    const redis = new Redis({ lazyConnect: true });
    logsInWith(
      statedLogin(() => now),
      redis,
    );
    now = { ...stated, password: 'second' };
    expect(redis.options.password).toBe('second');
    expect({ ...redis.options }).toMatchObject(now);
  });

  it('has the stated passwords for secrets', () => {
    expect(statedLogin(() => stated).secrets()).toEqual(['first', 'other']);
  });

  it('has what is stated at the sentinels where "credentials" return nothing for them', async () => {
    const like = new Redis({ lazyConnect: true });
    const login = providedLogin({
      provide: () => ({ username: 'given', password: 'token' }),
      stated: statedLogin(() => stated),
      ...{ like, runtime: new VirtualRuntime() },
    });
    expect(String(login.read().username)).toBe('default');
    expect(login.read().sentinelPassword).toBe('other');
    login.beforeRetry?.();
    await settled();
    const { username, password, sentinelPassword } = login.read();
    expect([username, password, sentinelPassword].map(String)).toEqual(['given', 'token', 'other']);
    expect(login.secrets()).toEqual(['first', 'other', 'token']);
  });
});
