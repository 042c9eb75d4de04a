import type { Cluster } from 'ioredis';
import { Redis, type ClusterOptions, type RedisOptions } from 'ioredis';
import { redact } from '../../options/redact.js';

/** Where Redis is: a URL, ioredis options, or an ioredis client of the application's, which is asked for its address only. */
export type RedisLocation = string | RedisOptions | Redis | Cluster;

/** Opens connections of our own; the application's client is never used, changed or closed. */
export interface RedisSource {
  /** For messages: address, never credentials. */
  readonly name: string;
  /** The `keyPrefix` of the application's client: it becomes part of ours. */
  readonly keyPrefix: string;
  readonly isCluster: boolean;
  connect(): Redis | Cluster;
  /** A connection to where `client`'s messages can be heard: to itself, or to one master of its Cluster. */
  connectSubscriber(client: Redis | Cluster): Redis;
  redact(text: string): string;
}

/** Shared by all our connections: nothing queues up, nothing is sent twice, and a demoted master is left at once. */
const OWN = {
  lazyConnect: true,
  enableOfflineQueue: false,
  enableReadyCheck: true,
  enableAutoPipelining: false,
  // ioredis would repeat unanswered commands after a reconnect: an acquire would then find its own token in its way.
  autoResendUnfulfilledCommands: false,
  autoResubscribe: false,
  maxRetriesPerRequest: null,
  keyPrefix: '',
  readOnly: false,
  role: 'master',
  stringNumbers: false,
  connectionName: 'holdfast',
  retryStrategy: (times: number): number => Math.min(25 * 2 ** times, 500) + Math.random() * 25,
  reconnectOnError: (error: Error): boolean => error.message.startsWith('READONLY'),
} satisfies RedisOptions as RedisOptions;

/** The subscriber is replaced, not reconnected: see `RedisInbox`. */
const OWN_SUBSCRIBER: RedisOptions = { ...OWN, retryStrategy: noRetry };

/** ioredis ends a connection for good when its strategy answers with anything but a number. */
function noRetry(): null {
  return null;
}

const isCluster = (client: Redis | Cluster): client is Cluster => client.isCluster;

/** By shape: the application may use another copy of ioredis than the one we import. */
export function isRedisClient(value: unknown): value is Redis | Cluster {
  if (typeof value !== 'object' || value === null) return false;
  const { duplicate, isCluster: flag } = value as Partial<Redis>;
  return typeof duplicate === 'function' && typeof flag === 'boolean';
}

export function redisSource(location: RedisLocation): RedisSource {
  if (isRedisClient(location)) {
    return isCluster(location)
      ? clusterSource(location)
      : singleSource((own) => location.duplicate(own));
  }
  return typeof location === 'string'
    ? singleSource((own) => new Redis(location, own))
    : singleSource((own) => new Redis({ ...location, ...own }));
}

function singleSource(create: (own: RedisOptions) => Redis): RedisSource {
  // Never connected (lazyConnect): it only tells what the application's options come to.
  const { keyPrefix: _ours, ...rest } = OWN;
  const template = create(rest);
  const { options } = template;
  const secrets = [options.password, options.sentinelPassword].filter(
    (secret) => typeof secret === 'string',
  );
  template.disconnect();
  return {
    name: nameOf(options),
    keyPrefix: options.keyPrefix ?? '',
    isCluster: false,
    connect: () => create(OWN),
    connectSubscriber: () => create(OWN_SUBSCRIBER),
    redact: (text) => redact(text, secrets),
  };
}

function clusterSource(cluster: Cluster): RedisSource {
  const redisOptions = cluster.options.redisOptions ?? {};
  const secrets = [redisOptions.password].filter((secret) => typeof secret === 'string');
  const options: ClusterOptions = {
    lazyConnect: true,
    enableOfflineQueue: false,
    enableAutoPipelining: false,
    keyPrefix: '',
    scaleReads: 'master',
    redisOptions: {
      ...redisOptions,
      autoResendUnfulfilledCommands: false,
      keyPrefix: '',
      connectionName: OWN.connectionName,
    },
  };
  return {
    name: 'cluster',
    keyPrefix: cluster.options.keyPrefix ?? redisOptions.keyPrefix ?? '',
    isCluster: true,
    connect: () => cluster.duplicate([], options),
    connectSubscriber: (client) => {
      const masters = (client as Cluster).nodes('master');
      const node = masters[Math.floor(Math.random() * masters.length)];
      if (node === undefined) throw new Error('no master of the cluster is known yet');
      return node.duplicate(OWN_SUBSCRIBER);
    },
    redact: (text) => redact(text, secrets),
  };
}

function nameOf(options: RedisOptions): string {
  if (options.sentinels && options.sentinels.length > 0) return `sentinel ${options.name ?? ''}`;
  return options.path ?? `${options.host ?? 'localhost'}:${String(options.port ?? 6379)}`;
}
