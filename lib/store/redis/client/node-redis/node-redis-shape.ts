/**
 * A client of node-redis 5 or 6 (`redis` or `@redis/client`): what `createClient`, `createCluster` and `createSentinel` return, as far
 * as it is looked at.
 */
export interface NodeRedisClient {
  readonly isOpen: boolean;
  connect(): Promise<unknown>;
  duplicate(overrides?: object): unknown;
  sendCommand(...args: never[]): Promise<unknown>;
}

/** What a connection logs in with, at node-redis. */
export interface NodeCredentialsProvider {
  readonly type: string;
  credentials?(): Promise<{ readonly username?: string; readonly password?: string }>;
}

export interface NodeSocketOptions {
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly tls?: boolean;
  readonly [option: string]: unknown;
}

/** The options of one connection, as far as they are read. */
export interface NodeOptions {
  readonly url?: string | undefined;
  readonly socket?: NodeSocketOptions;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly credentialsProvider?: NodeCredentialsProvider | undefined;
  readonly database?: number;
  readonly keyPrefix?: string | Buffer;
}

interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

/** The options of all three kinds of clients, as far as they are read. */
export interface AnyOptions extends NodeOptions {
  /** The nodes of a Cluster that the application names. */
  readonly rootNodes?: readonly NodeOptions[];
  readonly defaults?: NodeOptions;
  /** The name of the group behind Sentinel. */
  readonly name?: string;
  readonly sentinelRootNodes?: readonly HostAndPort[];
  readonly nodeClientOptions?: NodeOptions;
  readonly sentinelClientOptions?: NodeOptions;
}

type Listener = (...args: never[]) => void;

/** A client of one server. */
export interface NodeClient extends NodeRedisClient {
  readonly options?: NodeOptions;
  duplicate(overrides?: object): NodeClient;
  on(event: string, listener: Listener): unknown;
  destroy(): void;
  sendCommand(args: readonly string[]): Promise<unknown>;
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  sSubscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
}

/** A client of a Cluster, of which only the way to make clients of its nodes is used. */
export interface NodeClusterClient extends NodeRedisClient {
  duplicate(overrides?: object): NodeClusterClient;
  on(event: string, listener: Listener): unknown;
  /** Makes a client of a node, writes it there, and connects. */
  nodeClient(
    node: HostAndPort & { address: string; readonly: boolean; client?: NodeClient },
  ): Promise<unknown>;
}

/** A client of a group behind Sentinel, which is asked for clients of the master. */
export interface NodeSentinelClient extends NodeRedisClient {
  duplicate(overrides?: object): NodeSentinelClient;
  on(event: string, listener: Listener): unknown;
  destroy(): Promise<void>;
  /** Calls back with the client of the master. */
  _execute<T>(isReadonly: boolean, callback: (client: NodeClient) => Promise<T>): Promise<T>;
}

const has = (value: object, ...methods: readonly string[]): boolean =>
  methods.every((name) => typeof (value as Record<string, unknown>)[name] === 'function');

/** By shape: the application may use another copy of the package than the one that is found here. */
export const isNodeRedisClient = (value: object): value is NodeRedisClient =>
  has(value, 'duplicate', 'connect', 'sendCommand', 'destroy') &&
  typeof (value as { isOpen?: unknown }).isOpen === 'boolean';

export const isNodeRedisCluster = (client: object): client is NodeClusterClient =>
  has(client, 'nodeClient');

export const isNodeRedisSentinel = (client: object): client is NodeSentinelClient =>
  has(client, 'getMasterNode', '_execute');

/** What else the package makes, and what to give in its place; `undefined` for other objects. */
export function unusableNodeRedis(value: object): string | undefined {
  if (has(value, 'duplicate') || !has(value, 'sendCommand')) return undefined;
  if (has(value, 'execute', 'connect'))
    return 'is a pool of node-redis. Give the client that the pool was made of, or another one from createClient() with the same options.';
  if (has(value, 'getMasterNode'))
    return 'is a Sentinel client of node-redis 5, which does not tell its options. Give one of node-redis 6, or ioredis options with "sentinels".';
  return 'is a client of node-redis in its legacy mode, or of an older version. Give a client of node-redis 5 or 6 from createClient().';
}

/**
 * The options of a client as they are now. node-redis keeps those of a Sentinel client private. It gives the options of all three kinds
 * to the constructor that makes a duplicate, so this stands for that constructor. Nothing is made.
 */
export function optionsOf(client: NodeRedisClient): AnyOptions {
  let read: AnyOptions = {};
  const reader = function (options: AnyOptions): void {
    read = options;
  };
  const kind = Object.create(client, { constructor: { value: reader } }) as object;
  client.duplicate.call(Object.create(kind) as NodeRedisClient);
  return read;
}
