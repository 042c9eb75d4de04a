import type { RedisOptions } from 'ioredis';
import type { Runtime } from '../../../../time/runtime.js';
import { retryDelay } from '../retry-delay.js';

/** ioredis ends a connection permanently when its strategy returns anything but a number. */
const noRetry = (): null => null;

/** The options of every connection of ours, to a node of a Cluster too: no limits but our own, and no command is sent twice. */
export const OWN_NODE = {
  lazyConnect: true,
  // ioredis would repeat unanswered commands after a reconnect: the reply to a release would then be that the lock is
  // not its own.
  autoResendUnfulfilledCommands: false,
  autoResubscribe: false,
  commandTimeout: undefined,
  // We notice silence ourselves: the timer of ioredis 5 outlives its connection and ends the next one.
  socketTimeout: undefined,
  disconnectTimeout: 250,
  keyPrefix: '',
  stringNumbers: false,
  connectionName: 'holdfast',
} satisfies RedisOptions as RedisOptions;

/** The options of a connection to one server: nothing queues up, unanswered commands fail, and a demoted master is left at once. */
export const ownOptions = (runtime: Runtime): RedisOptions => ({
  ...OWN_NODE,
  enableOfflineQueue: false,
  enableReadyCheck: true,
  enableAutoPipelining: false,
  maxRetriesPerRequest: 0,
  readOnly: false,
  role: 'master',
  // A sentinel that hangs must not keep us from asking the next one.
  sentinelCommandTimeout: 1_000,
  retryStrategy: retryDelay(runtime),
  sentinelRetryStrategy: retryDelay(runtime),
});

/** The subscriber is replaced, not reconnected: see `Subscriber`. Messages belong to no database, so it selects none. */
export const subscriberOptions = (runtime: Runtime): RedisOptions => ({
  ...ownOptions(runtime),
  db: 0,
  retryStrategy: noRetry,
  sentinelRetryStrategy: noRetry,
});

/** Where a connection with these options leads to. */
export function addressOf(options: RedisOptions): string {
  const sentinels = options.sentinels ?? [];
  if (sentinels.length > 0)
    return `sentinel ${options.name ?? ''} (${sentinels.map(addressOf).join(', ')})`;
  return options.path ?? `${options.host ?? 'localhost'}:${String(options.port ?? 6379)}`;
}
