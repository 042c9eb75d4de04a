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
  NodeRedisClient,
} from '../../lib/store/redis/client/node-redis/node-redis-shape.js';
import { NodeRedisSingle } from '../../lib/store/redis/client/node-redis/node-redis-single.js';
import { NodeRedisSubscriber } from '../../lib/store/redis/client/node-redis/node-redis-subscriber.js';
import type { ClientEvents } from '../../lib/store/redis/client/redis-client.js';
import { redisSource } from '../../lib/store/redis/client/redis-location.js';
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

  it('that only listens pings the server', async () => {
    const client = new FakeNode();
    const events = { onMessage: ignore, onError: ignore, onMoved: ignore, onEnd: ignore };
    const subscriber = new NodeRedisSubscriber(opening(client), events);
    await subscriber.connect();
    client.asked.length = 0;
    await subscriber.ping();
    expect(client.asked).toEqual([['ping']]);
    subscriber.disconnect();
    await expect(subscriber.ping()).rejects.toThrow('the connection closed');
  });

  it('to a node of a Cluster counts the replies that have arrived', async () => {
    const node = new ClusterNode('h:7000', opening(new FakeNode()), ignore);
    expect(node.arrived).toBe(0);
    await node.command('get', 'a');
    await node.command('get', 'b');
    expect(node.arrived).toBe(2);
    node.disconnect();
    expect(node.arrived).toBe(0);
  });
});

it('a client of one server, with node-redis, finds the keys of a command', () => {
  const client = new NodeRedisSingle({
    ...{ open: opening(new FakeNode()), events: NO_EVENTS },
    ...{ runtime: new VirtualRuntime(), usesTls: false },
  });
  expect(client.keysIn(['mset', 'a', 1, 'b', 2])).toEqual(['a', 'b']);
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

it('a group behind Sentinel that cannot be asked says what went wrong first', async () => {
  class SentinelClient extends EventEmitter {
    readonly isOpen = false;
    readonly sendCommand = ignore;
    readonly getMasterNode = ignore;
    readonly _execute = ignore;
    readonly options: object;

    constructor(options: object) {
      super();
      this.options = options;
    }

    duplicate(overrides: object = {}): object {
      const Kind = this.constructor as typeof SentinelClient;
      return new Kind({ ...this.options, ...overrides });
    }

    async connect(): Promise<void> {
      this.emit('error', new Error('connect ECONNREFUSED'));
      this.emit('error', new Error('it was closed'));
      return Promise.reject(new Error('no sentinel could be asked'));
    }

    async destroy(): Promise<void> {
      // It has no connection.
    }
  }
  const client = new SentinelClient({
    name: 'group',
    sentinelRootNodes: [{ host: 'a', port: 26_379 }],
  });
  const runtime = new VirtualRuntime();
  const source = redisSource(client as unknown as NodeRedisClient, runtime);
  expect(source.name).toBe('sentinel group (a:26379)');
  const errors: string[] = [];
  const connection = source.connect({
    ...NO_EVENTS,
    onError: (message) => errors.push(message),
  });
  connection.connect();
  await connected();
  expect(errors).toEqual(['connect ECONNREFUSED']);
  connection.disconnect();
});
