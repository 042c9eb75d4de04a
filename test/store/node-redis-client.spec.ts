import { EventEmitter } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import { ClusterNode } from '../../lib/store/redis/client/node-redis/cluster-node.js';
import {
  NodeConnection,
  type Opener,
} from '../../lib/store/redis/client/node-redis/node-connection.js';
import { NodeRedisCluster } from '../../lib/store/redis/client/node-redis/node-redis-cluster.js';
import { NodeRedisLogin } from '../../lib/store/redis/client/node-redis/node-redis-login.js';
import type {
  NodeClient,
  NodeCredentialsProvider,
  NodeRedisClient,
} from '../../lib/store/redis/client/node-redis/node-redis-shape.js';
import { NodeRedisSingle } from '../../lib/store/redis/client/node-redis/node-redis-single.js';
import { NodeRedisSubscriber } from '../../lib/store/redis/client/node-redis/node-redis-subscriber.js';
import type { ClientEvents } from '../../lib/store/redis/client/redis-client.js';
import { isLocatedClient, redisSource } from '../../lib/store/redis/client/redis-location.js';
import { CLOSED } from '../../lib/store/redis/client/reply-errors.js';
import { settled, VirtualRuntime } from '../support/virtual-runtime.js';

const ignore = (): void => undefined;
const NO_EVENTS: ClientEvents = {
  ...{ onConnect: ignore, onReady: ignore, onError: ignore },
  ...{ onClose: ignore, onEnd: ignore, onSlots: ignore },
};

/** A client of node-redis that answers with what the test says. */
class FakeNode extends EventEmitter {
  readonly asked: (readonly string[])[] = [];
  isOpen = true;
  answer: (args: readonly string[]) => unknown = () => 'OK';

  async sendCommand(args: readonly string[]): Promise<unknown> {
    this.asked.push(args);
    return this.answer(args);
  }

  destroy(): void {
    this.isOpen = false;
  }
}

const asClient = (client: FakeNode): NodeClient => client as unknown as NodeClient;

/** Connects at once. */
const opening =
  (client: FakeNode): Opener =>
  () => {
    setImmediate(() => client.emit('ready'));
    return Promise.resolve(asClient(client));
  };

/** Until what waits for the next turn of the event loop has happened, too. */
async function connected(): Promise<void> {
  await settled();
  await settled();
}

describe('a connection with node-redis', () => {
  it('that is ended before its client was made ends that client', async () => {
    const client = new FakeNode();
    const connection = new NodeConnection(() => settled().then(() => asClient(client)), {
      onReady: ignore,
      onEnd: ignore,
    });
    connection.end();
    await connected();
    expect(client.isOpen).toBe(false);
  });

  it('that ends before a reply says so, and what the client said as the cause', async () => {
    const client = new FakeNode();
    const connection = new NodeConnection(opening(client), { onReady: ignore, onEnd: ignore });
    await connected();
    const cause = new Error('Disconnects client');
    client.answer = () => {
      connection.end();
      throw cause;
    };
    const failed: unknown = await connection.send(['get', 'a']).catch((e: unknown) => e);
    expect(failed).toMatchObject({ message: CLOSED });
    expect((failed as Error).cause).toBe(cause);
  });

  function listener(open: Opener) {
    const happened: string[] = [];
    const subscriber = new NodeRedisSubscriber(open, {
      ...{ onMessage: ignore, onError: ignore },
      onMoved: () => happened.push('moved'),
      onEnd: () => happened.push('end'),
    });
    return { subscriber, happened };
  }

  it('that only listens is ready between its beginning and its end', async () => {
    const { subscriber, happened } = listener(opening(new FakeNode()));
    expect(subscriber.isReady).toBe(false);
    await subscriber.connect();
    expect(subscriber.isReady).toBe(true);
    subscriber.disconnect();
    expect(subscriber.isReady).toBe(false);
    expect(happened).toEqual(['end']);
  });

  it('that only listens may be ended before it begins', () => {
    const { subscriber } = listener(opening(new FakeNode()));
    expect(() => {
      subscriber.disconnect();
    }).not.toThrow();
  });

  it('that only listens says why it could not connect', async () => {
    const { subscriber } = listener(() => Promise.reject(new Error('connect ECONNREFUSED')));
    await expect(subscriber.connect()).rejects.toThrow('connect ECONNREFUSED');
    const ended = listener(opening(new FakeNode()));
    const connecting = ended.subscriber.connect();
    ended.subscriber.disconnect();
    await expect(connecting).rejects.toThrow(CLOSED);
    expect(ended.happened).toEqual(['end']);
  });

  it.each(['sharded-channel-moved', 'server-sunsubscribe'])(
    'that only listens says that a channel has moved, with each version of node-redis: %s',
    async (event) => {
      const client = new FakeNode();
      const { subscriber, happened } = listener(opening(client));
      await subscriber.connect();
      client.emit(event);
      expect(happened).toEqual(['moved']);
      subscriber.disconnect();
    },
  );

  it('that only listens pings the server', async () => {
    const client = new FakeNode();
    const { subscriber } = listener(opening(client));
    await subscriber.connect();
    client.asked.length = 0;
    await subscriber.ping();
    expect(client.asked).toEqual([['ping']]);
    subscriber.disconnect();
    await expect(subscriber.ping()).rejects.toThrow('the connection closed');
  });

  it('to a node of a Cluster counts the replies that have arrived, also those that are errors', async () => {
    const client = new FakeNode();
    const node = new ClusterNode('h:7000', opening(client), ignore);
    expect(node.arrived).toBe(0);
    await node.command('get', 'a');
    await node.command('get', 'b');
    expect(node.arrived).toBe(2);
    client.answer = () => Promise.reject(new Error('NOPERM'));
    await expect(node.command('get', 'c')).rejects.toThrow('NOPERM');
    expect(node.arrived).toBe(3);
    node.disconnect();
    expect(node.arrived).toBe(0);
  });

  it('to a node of a Cluster begins with the first command, and is used at once when it stands', async () => {
    const client = new FakeNode();
    const node = new ClusterNode('h:7000', opening(client), ignore);
    expect(node.isConnected).toBe(false);
    const replies = ['a', 'b'].map((key) => node.command('get', key));
    expect(node.isConnected).toBe(true);
    expect(await Promise.all(replies)).toEqual(['OK', 'OK']);
    client.asked.length = 0;
    const reply = node.command('get', 'c');
    expect(client.asked).toEqual([['get', 'c']]);
    await reply;
    node.disconnect();
    expect([node.isConnected, client.isOpen]).toEqual([false, false]);
  });
});

describe('a client of one server, with node-redis,', () => {
  function singleOf(open: Opener) {
    const runtime = new VirtualRuntime();
    const errors: string[] = [];
    let closes = 0;
    const client = new NodeRedisSingle({
      ...{ open, runtime, usesTls: false },
      events: {
        ...NO_EVENTS,
        onError: (message) => errors.push(message),
        onClose: () => (closes += 1),
      },
    });
    return { client, runtime, errors, closes: () => closes };
  }

  it('finds the keys of a command', () => {
    const { client } = singleOf(opening(new FakeNode()));
    expect(client.keysIn(['mset', 'a', 1, 'b', 2])).toEqual(['a', 'b']);
  });

  it('has no masters of slots', () => {
    expect(singleOf(opening(new FakeNode())).client.masters()).toStrictEqual([]);
  });

  it('may be ended before it has connected', () => {
    const { client } = singleOf(opening(new FakeNode()));
    client.disconnect();
    expect(client.state).toBe('ended');
  });

  it('says why it could not connect', async () => {
    const { client, errors, closes } = singleOf(() =>
      Promise.reject(new Error('connect ECONNREFUSED')),
    );
    client.connect();
    await connected();
    expect(errors).toEqual(['connect ECONNREFUSED']);
    expect([client.state, closes()]).toEqual(['connecting', 1]);
    client.disconnect();
  });

  it('says nothing of what ended a connection that stood, and connects again', async () => {
    const [first, second] = [new FakeNode(), new FakeNode()];
    const left = [first, second];
    const { client, runtime, errors, closes } = singleOf((socket) =>
      opening(left.shift()!)(socket),
    );
    client.connect();
    await connected();
    expect(client.state).toBe('ready');
    first.emit('error', new Error('Socket closed unexpectedly'));
    expect([client.state, closes()]).toEqual(['connecting', 1]);
    await runtime.advance(1_000);
    await connected();
    expect(client.state).toBe('ready');
    expect(errors).toEqual([]);
    client.disconnect();
    expect(second.isOpen).toBe(false);
  });

  it('says nothing of a connection that it left before the server replied', async () => {
    const node = new FakeNode();
    const { client, errors, closes } = singleOf(() => Promise.resolve(asClient(node)));
    client.connect();
    await connected();
    node.emit('connect');
    client.reconnect();
    expect([client.state, closes(), node.isOpen]).toEqual(['connecting', 1, false]);
    expect(errors).toEqual([]);
    client.disconnect();
  });
});

describe('a client of a Cluster, with node-redis,', () => {
  /** With one root, of which the test says what it knows; `undefined` while it is away. */
  function clusterOf(slotsOf: () => unknown) {
    const runtime = new VirtualRuntime();
    const errors: string[] = [];
    const open: Opener = (socket) => {
      const slots = slotsOf();
      if (slots === undefined) return Promise.reject(new Error('connect ECONNREFUSED'));
      const client = new FakeNode();
      client.answer = ([name]) => (name === 'cluster' ? slots : 'OK');
      return opening(client)(socket);
    };
    const cluster = new NodeRedisCluster({
      ...{ roots: [['root:7000', open]], openAt: () => open, runtime },
      events: { ...NO_EVENTS, onError: (message) => errors.push(message) },
    });
    return { cluster, runtime, errors };
  }

  it.each<[string, string | null]>([
    ['a:7001', 'a'],
    ['root:7001', ''],
    ['root:7001', null],
  ])('finds the master %s where its host is given as %j', async (address, host) => {
    const { cluster } = clusterOf(() => [[0, 16_383, [host, 7_001]]]);
    cluster.connect();
    await connected();
    expect(cluster.ownerOf(42)).toBe(address);
    expect(cluster.masters().map((master) => master.address)).toEqual([address]);
    cluster.disconnect();
  });

  it('says so where no node was named', async () => {
    const errors: string[] = [];
    const runtime = new VirtualRuntime();
    const cluster = new NodeRedisCluster({
      ...{ roots: [], openAt: () => opening(new FakeNode()), runtime },
      events: { ...NO_EVENTS, onError: (message) => errors.push(message) },
    });
    cluster.connect();
    await connected();
    expect(errors).toEqual([expect.stringMatching(/: no node of the cluster is known$/)]);
    cluster.disconnect();
  });

  it('asks again when no node could be asked', async () => {
    let isAway = true;
    const { cluster, runtime, errors } = clusterOf(() =>
      isAway ? undefined : [[0, 16_383, ['a', 7_001]]],
    );
    cluster.connect();
    await connected();
    expect(errors).toEqual([expect.stringContaining('root:7000: connect ECONNREFUSED')]);
    expect(cluster.state).toBe('connecting');
    isAway = false;
    await runtime.advance(1_000);
    await connected();
    expect(cluster.state).toBe('ready');
    cluster.disconnect();
    expect(runtime.timers).toBe(0);
  });
});

describe('a login, with node-redis,', () => {
  const stated = { username: 'stated', password: 'of-client' };

  it('is with what "credentials" return, which is secret then', async () => {
    const given = { username: 'given', password: 'token', sentinelPassword: 'other' };
    const login = new NodeRedisLogin(new VirtualRuntime(), () => given);
    const { credentialsProvider, ...rest } = login.optionsFor(stated);
    expect(rest).toEqual({ username: undefined, password: undefined });
    expect(await credentialsProvider?.credentials?.()).toEqual({
      ...{ username: 'given', password: 'token' },
    });
    expect(login.secrets).toEqual(['of-client', 'token']);
  });

  it('fails where "credentials" return nothing in time', async () => {
    const runtime = new VirtualRuntime();
    const login = new NodeRedisLogin(runtime, () => new Promise(ignore));
    const asked = login.optionsFor(stated).credentialsProvider?.credentials?.();
    const failed = expect(asked).rejects.toThrow(
      'option "credentials": returned nothing within 10000 ms',
    );
    await runtime.advance(10_000);
    await failed;
    expect(runtime.timers).toBe(0);
  });

  const token = async (): Promise<object> => ({ username: 'provided', password: 'token' });

  it.each<[string, NodeCredentialsProvider | undefined]>([
    ['there is none', undefined],
    ['it is of another type', { type: 'streaming-credentials-provider', credentials: token }],
    ['it has no function', { type: 'async-credentials-provider' }],
  ])('leaves the provider of the client as it is where %s', (_, credentialsProvider) => {
    const login = new NodeRedisLogin(new VirtualRuntime(), undefined);
    const options = login.optionsFor({ ...stated, credentialsProvider });
    expect(options).toEqual({ ...stated, credentialsProvider });
    expect(options.credentialsProvider).toBe(credentialsProvider);
  });

  it('asks a provider of the client, and knows its secret', async () => {
    const login = new NodeRedisLogin(new VirtualRuntime(), undefined);
    const own = {
      type: 'async-credentials-provider',
      user: 'provided',
      async credentials() {
        return { username: this.user, password: 'token' };
      },
    };
    const { credentialsProvider } = login.optionsFor({ ...stated, credentialsProvider: own });
    expect(login.secrets).toEqual(['of-client']);
    expect(await credentialsProvider?.credentials?.()).toEqual({
      ...{ username: 'provided', password: 'token' },
    });
    expect(login.secrets).toEqual(['of-client', 'token']);
  });
});

describe('a login at sentinels, with node-redis,', () => {
  const stated = { username: 'stated', password: 'of-sentinels' };

  it.each([
    ['is stated by the client', { password: 'p' }, stated],
    [
      'is given',
      { password: 'p', sentinelUsername: 'given', sentinelPassword: 's' },
      { username: 'given', password: 's' },
    ],
  ])('%s where "credentials" return %j', async (_, given, expected) => {
    const login = new NodeRedisLogin(new VirtualRuntime(), () => given);
    const { credentialsProvider } = login.optionsForSentinel(stated);
    expect(await credentialsProvider?.credentials?.()).toEqual(expected);
  });
});

/** What an application hands over: it keeps its options, and others are made like it. */
class ApplicationClient extends EventEmitter {
  readonly isOpen = false;
  readonly sendCommand = ignore;
  readonly options: Readonly<Record<string, unknown>>;

  constructor(options: object) {
    super();
    this.options = { ...options };
  }

  duplicate(overrides: object = {}): object {
    const Kind = this.constructor as typeof ApplicationClient;
    return new Kind({ ...this.options, ...overrides });
  }

  async connect(): Promise<void> {
    // It needs no connection.
  }

  async destroy(): Promise<void> {
    // It has no connection.
  }
}

function sourceOf(client: ApplicationClient) {
  const errors: string[] = [];
  const source = redisSource(client as unknown as NodeRedisClient, new VirtualRuntime());
  const connection = source.connect({ ...NO_EVENTS, onError: (message) => errors.push(message) });
  return { name: source.name, connection, errors };
}

describe('a group behind Sentinel, with node-redis,', () => {
  class SentinelClient extends ApplicationClient {
    readonly getMasterNode = ignore;

    async _execute(_isReadonly: boolean, _callback: (client: object) => unknown): Promise<unknown> {
      throw new Error('no sentinel could be asked');
    }
  }
  const group = { name: 'group', sentinelRootNodes: [{ host: 'a', port: 26_379 }] };

  it('that cannot be asked says what went wrong first', async () => {
    class Away extends SentinelClient {
      override async connect(): Promise<void> {
        this.emit('error', new Error('connect ECONNREFUSED'));
        this.emit('error', new Error('it was closed'));
        return Promise.reject(new Error('no sentinel could be asked'));
      }
    }
    const { name, connection, errors } = sourceOf(new Away(group));
    expect(name).toBe('sentinel group (a:26379)');
    connection.connect();
    await connected();
    expect(errors).toEqual(['connect ECONNREFUSED']);
    connection.disconnect();
  });

  it('has its master connected to as the options of its nodes say', async () => {
    const guides: SentinelClient[] = [];
    const toMaster: object[] = [];
    const node = new FakeNode();
    const master = {
      options: { socket: { host: 'm', port: 7_000 } },
      duplicate: (options: object) => {
        toMaster.push(options);
        return Object.assign(node, { connect: async () => node.emit('ready') });
      },
    };
    class Reachable extends SentinelClient {
      override async connect(): Promise<void> {
        guides.push(this);
      }

      override async _execute(_: boolean, callback: (client: object) => unknown) {
        return callback(master);
      }
    }
    const nodeClientOptions = {
      ...{ username: 'user', password: 'secret', database: 3 },
      socket: { connectTimeout: 700, host: 'elsewhere' },
    };
    const { connection, errors } = sourceOf(new Reachable({ ...group, nodeClientOptions }));
    connection.connect();
    await connected();
    expect(errors).toEqual([]);
    const login = { username: 'user', password: 'secret', database: undefined };
    const asked = guides[0]?.options.nodeClientOptions as { socket: { signal: AbortSignal } };
    expect(asked).toMatchObject({
      ...login,
      socket: { connectTimeout: 700, reconnectStrategy: false },
    });
    expect(toMaster).toEqual([
      expect.objectContaining({
        ...{ ...login, disableOfflineQueue: true },
        socket: expect.objectContaining({ connectTimeout: 700, host: 'm', port: 7_000 }),
      }),
    ]);
    expect(asked.socket.signal.aborted).toBe(false);
    connection.disconnect();
    expect(asked.socket.signal.aborted).toBe(true);
  });
});

describe('a node of a Cluster that is named by a URL, with node-redis,', () => {
  interface Asked {
    readonly node: object;
    readonly defaults: unknown;
  }

  class ClusterClient extends ApplicationClient {
    static readonly asked: Asked[] = [];

    async nodeClient(node: { address: string; client?: NodeClient }): Promise<void> {
      ClusterClient.asked.push({ node: { ...node }, defaults: this.options.defaults });
      this.emit('error', new Error('connect ECONNREFUSED')); // as node-redis 5 does
      node.client = asClient(new FakeNode());
    }
  }

  it.each([
    [
      'its URL',
      'rediss://us%65r:s%3Acret@root:7000',
      { username: 'user', password: 's:cret', socket: { tls: true } },
    ],
    ['all nodes', 'redis://root:7000', { username: 'common', password: 'of-all' }],
  ])('is logged in at with what %s says', async (_, url, login) => {
    ClusterClient.asked.length = 0;
    const defaults = { username: 'common', password: 'of-all' };
    const { connection, errors } = sourceOf(new ClusterClient({ rootNodes: [{ url }], defaults }));
    connection.connect();
    await connected();
    expect(ClusterClient.asked).toMatchObject([
      { node: { host: 'root', port: 7_000 }, defaults: { ...login, url: undefined } },
    ]);
    expect(errors).toEqual([]);
    connection.disconnect();
  });
});

describe('an object is a client of node-redis', () => {
  const shaped = {
    ...{ duplicate: ignore, connect: ignore, sendCommand: ignore, destroy: ignore },
    isOpen: false,
  };

  it.each<[string, object, boolean]>([
    ['where it has its shape', shaped, true],
    ['but not where it does not say whether it is open', { ...shaped, isOpen: undefined }, false],
    ['but not where it makes no others', { ...shaped, duplicate: undefined }, false],
    ['but not without commands', { ...shaped, sendCommand: undefined }, false],
  ])('%s', (_, value, isClient) => {
    expect(isLocatedClient(value)).toBe(isClient);
  });
});
