import { LockConfigurationError } from '../../../../errors.js';
import { redact } from '../../../../errors/redact.js';
import type { Runtime } from '../../../../time/runtime.js';
import type { ClientLibrary } from '../client-library.js';
import type { RedisSource } from '../redis-client.js';
import type { Opener, OwnSocket } from './node-connection.js';
import { NodeRedisCluster } from './node-redis-cluster.js';
import { NodeRedisLogin } from './node-redis-login.js';
import {
  isNodeRedisClient,
  isNodeRedisCluster,
  isNodeRedisSentinel,
  optionsOf,
  type NodeClient,
  type NodeClusterClient,
  type NodeOptions,
  type NodeRedisClient,
  type NodeSentinelClient,
} from './node-redis-shape.js';
import { NodeRedisSingle } from './node-redis-single.js';

/** Clients of node-redis. */
export const nodeRedisLibrary: ClientLibrary<NodeRedisClient> = {
  isClient: isNodeRedisClient,
  isCluster: isNodeRedisCluster,
  source: (client, runtime, provide) => {
    const parts = { runtime, login: new NodeRedisLogin(runtime, provide) };
    if (isNodeRedisCluster(client)) return clusterSource(client, parts);
    if (isNodeRedisSentinel(client)) return sentinelSource(client, parts);
    return clientSource(client as NodeClient, parts);
  },
};

interface Parts {
  readonly runtime: Runtime;
  readonly login: NodeRedisLogin;
}

/**
 * What the application has set for its own commands and does not hold for ours. A new connection is named and selects its database by
 * commands of ours: where a user is forbidden that, node-redis would end the connection. A URL would win over options beside it.
 */
const OURS = {
  url: undefined,
  name: undefined,
  database: undefined,
  keyPrefix: undefined,
  RESP: 2,
  readonly: false,
  commandOptions: { timeout: undefined },
  commandsQueueMaxLength: undefined,
  disableOfflineQueue: true,
  disableClientInfo: true,
  clientSideCache: undefined,
  emitInvalidate: undefined,
  maintNotifications: 'disabled',
  pingInterval: undefined,
} as const;

const ignore = (): void => undefined;

function clientSource(client: NodeClient, { runtime, login }: Parts): RedisSource {
  const options = optionsOf(client);
  const open: Opener = (socket) => {
    const now = optionsOf(client);
    const own = client.duplicate({
      ...OURS,
      ...login.optionsFor(now),
      socket: { ...now.socket, ...socket },
    });
    return Promise.resolve(begun(own));
  };
  return singleSource({
    ...{ open, runtime, login, options },
    name: options.socket?.path ?? hostAndPort(options.socket ?? {}),
    keyPrefix: options.keyPrefix,
  });
}

/**
 * Asks the sentinels for the master before each connection. The client for Sentinel itself would send a command again that was not
 * answered when a connection broke.
 */
function sentinelSource(client: NodeSentinelClient, { runtime, login }: Parts): RedisSource {
  const {
    name = '',
    sentinelRootNodes = [],
    nodeClientOptions = {},
    keyPrefix,
  } = optionsOf(client);
  const sentinels = sentinelRootNodes.map(hostAndPort).join(', ');
  return singleSource({
    ...{ runtime, login, keyPrefix },
    options: nodeClientOptions,
    name: `sentinel ${name} (${sentinels})`,
    open: (socket) => openMaster(client, login, socket),
  });
}

/** A sentinel that hangs must not keep us from asking the next one. */
const SENTINEL_LIMITS = { connectTimeout: 1_000, socketTimeout: 2_000 };

async function openMaster(
  client: NodeSentinelClient,
  login: NodeRedisLogin,
  socket: OwnSocket,
): Promise<NodeClient> {
  const { nodeClientOptions = {}, sentinelClientOptions = {} } = optionsOf(client);
  const { signal } = socket;
  const node = { ...nodeClientOptions, ...OURS, ...login.optionsFor(nodeClientOptions) };
  let problem: unknown;
  const guide = client.duplicate({
    ...{ RESP: 2, keyPrefix: undefined, clientSideCache: undefined, commandOptions: {} },
    ...{ masterPoolSize: 1, replicaPoolSize: 0, reserveClient: false, scanInterval: 0 },
    maxCommandRediscovers: 0,
    nodeClientOptions: {
      ...node,
      socket: { ...nodeClientOptions.socket, signal, reconnectStrategy: false },
    },
    sentinelClientOptions: {
      ...sentinelClientOptions,
      ...OURS,
      ...login.optionsForSentinel(sentinelClientOptions),
      socket: {
        ...sentinelClientOptions.socket,
        ...SENTINEL_LIMITS,
        ...{ signal, reconnectStrategy: false },
      },
    },
  });
  guide.on('error', (error: unknown) => {
    problem ??= error;
  });
  try {
    await guide.connect();
    const master = await guide._execute(false, (each) => Promise.resolve([each] as const));
    const found = master[0].options?.socket;
    return begun(
      master[0].duplicate({
        ...node,
        socket: { ...found, ...nodeClientOptions.socket, ...addressIn(found), ...socket },
      }),
    );
  } catch (error) {
    throw problem ?? error;
  } finally {
    guide.destroy().catch(ignore);
  }
}

const addressIn = ({ host, port }: NodeOptions['socket'] & object = {}): object => ({ host, port });

function begun(client: NodeClient): NodeClient {
  client.connect().catch(ignore); // its events report the outcome
  return client;
}

interface SingleSource extends Parts {
  readonly name: string;
  readonly open: Opener;
  /** The options of connections to the server. */
  readonly options: NodeOptions;
  readonly keyPrefix: string | Buffer | undefined;
}

function singleSource({ name, open, options, keyPrefix, ...parts }: SingleSource): RedisSource {
  const { runtime, login } = parts;
  const { database = 0, socket } = options;
  if (!Number.isInteger(database) || database < 0) {
    throw new LockConfigurationError(
      `The client in option "redis" names the database ${String(database)} of ${name}. Databases have numbers from 0 on.`,
    );
  }
  login.optionsFor(options);
  return {
    ...{ name, database },
    keyPrefix: String(keyPrefix ?? ''),
    isCluster: false,
    connect: (events) =>
      new NodeRedisSingle({ open, events, runtime, usesTls: socket?.tls === true }),
    redact: (text) => redact(text, login.secrets),
  };
}

function clusterSource(client: NodeClusterClient, { runtime, login }: Parts): RedisSource {
  const { rootNodes = [], defaults = {}, keyPrefix } = optionsOf(client);
  const roots = rootNodes.map((root) => [rootAddress(root), root] as const);
  const name = `cluster ${roots.map(([address]) => address).join(', ')}`;
  const { database } = [defaults, ...rootNodes].find((each) => (each.database ?? 0) !== 0) ?? {};
  if (database !== undefined) {
    throw new LockConfigurationError(
      `The client in option "redis" names the database ${String(database)} of the ${name}. A Cluster has database 0 only: leave the number ` +
        'out, and tell applications apart by "keyPrefix".',
    );
  }
  const openAt =
    (address: string, of: NodeOptions = {}): Opener =>
    (socket) => {
      const { defaults: common = {} } = optionsOf(client);
      const options = { ...common, ...of, socket: { ...common.socket, ...of.socket } };
      return Promise.resolve(nodeOf(client, address, options, { login, socket }));
    };
  return {
    name,
    keyPrefix: String(keyPrefix ?? ''),
    isCluster: true,
    database: 0,
    connect: (events) =>
      new NodeRedisCluster({
        ...{ events, runtime },
        openAt: (address) => openAt(address),
        roots: roots.map(([address, root]) => [address, openAt(address, withUrl(root))] as const),
      }),
    redact: (text) => redact(text, login.secrets),
  };
}

interface Connecting {
  readonly login: NodeRedisLogin;
  readonly socket: OwnSocket;
}

/** Only a client for Clusters makes clients of nodes. It is never connected, and makes one. */
function nodeOf(
  client: NodeClusterClient,
  address: string,
  options: NodeOptions,
  { login, socket }: Connecting,
): NodeClient {
  const maker = client.duplicate({
    ...{ RESP: 2, keyPrefix: undefined, clientSideCache: undefined },
    defaults: {
      ...options,
      ...OURS,
      ...login.optionsFor(options),
      socket: { ...options.socket, ...socket },
    },
  });
  maker.on('error', ignore); // node-redis 5 reports the errors of nodes there, too
  const [host, port] = [
    address.slice(0, address.lastIndexOf(':')),
    Number(address.slice(address.lastIndexOf(':') + 1)),
  ];
  const node: Parameters<NodeClusterClient['nodeClient']>[0] = {
    ...{ address, host, port },
    readonly: false,
  };
  maker.nodeClient(node).catch(ignore); // its events report the outcome
  if (node.client === undefined) throw new Error(`no client was made for ${address}`);
  return node.client;
}

const hostAndPort = ({
  host = 'localhost',
  port = 6379,
}: {
  host?: string;
  port?: number;
}): string => `${host}:${String(port)}`;

/** node-redis reads the URL of a node when it connects to it. */
function rootAddress({ url, socket = {} }: NodeOptions): string {
  if (url === undefined) return hostAndPort(socket);
  const { hostname, port } = new URL(url);
  return hostAndPort({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) });
}

/** The options that a URL stands for, where `url` itself would win over ours. */
function withUrl(root: NodeOptions): NodeOptions {
  if (root.url === undefined) return root;
  const { protocol, username, password } = new URL(root.url);
  return {
    ...root,
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
    socket: { ...root.socket, ...(protocol === 'rediss:' && { tls: true }) },
  };
}
