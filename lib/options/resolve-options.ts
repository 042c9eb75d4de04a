import { LockConfigurationError } from '../errors.js';
import { ttl } from './checks.js';
import { describe } from '../errors/describe.js';
import { isClusterClient } from '../store/redis/client/redis-location.js';
import { locationOf, type Location } from './location.js';
import { LOCK_MODULE, type LockModuleOptions } from './lock-module-options.js';
import type { Resolved } from './schema.js';
import { checkedOptions } from './unknown-option.js';

type Values = Resolved<typeof LOCK_MODULE.options>;

/** The bounds of a tenure. */
export type Handoff = Values['handoff'];

/** Every option, checked, in the units of the library. */
export interface ResolvedOptions extends Omit<
  Values,
  'redis' | 'store' | 'fencingTokenRetentionMs'
> {
  readonly location: Location;
  readonly fenceKeepMs: number;
}

/** @throws LockConfigurationError that names the option, what was given, and what to do. */
export function resolveOptions(options: LockModuleOptions): ResolvedOptions {
  refuseNoOptions(options);
  const { redis, store, fencingTokenRetentionMs, ...values } = checkedOptions(LOCK_MODULE, options);
  const location = locationOf({ redis, store }, options);
  refuseClusterInQuorum(location);
  const { credentials, restartGuard, replicas, nodeTimeoutMs } = values;
  if (credentials !== undefined && location.kind !== 'redis') throw onlyRedis('credentials');
  if (restartGuard !== undefined) checkRestartGuard(location);
  if (replicas !== undefined) checkReplicas(replicas, location, nodeTimeoutMs);
  ttlWithin(values.ttlMs, restartGuard);
  return { ...values, location, fenceKeepMs: fencingTokenRetentionMs };
}

/**
 * For JavaScript, and for configurations that are not there.
 *
 * @throws LockConfigurationError
 */
export function refuseNoOptions(options: unknown): void {
  if (typeof options === 'object' && options !== null) return;
  throw new LockConfigurationError(
    `LockModule needs an options object, received ${describe(options)}. Write LockModule.forRoot({ redis: 'redis://localhost:6379' }).`,
  );
}

/** @throws LockConfigurationError */
export const ttlToMs = (value: unknown, guard: Values['restartGuard']): number =>
  ttlWithin(ttl.resolve(value, 'ttl'), guard);

/** @throws LockConfigurationError for a TTL that a restarted server would not wait for */
export function ttlWithin(ttlMs: number, guard: Values['restartGuard']): number {
  if (guard === undefined || ttlMs <= guard.maxTtlMs) return ttlMs;
  throw new LockConfigurationError(
    `A TTL of ${String(ttlMs)} ms is longer than "restartGuard.maxTtl", ${String(guard.maxTtlMs)} ms: a restarted server would forget it ` +
      'too early. Give a shorter "ttl" (it is renewed for as long as the lock is held), or a longer "maxTtl".',
  );
}

const hasCluster = (location: Location & { readonly kind: 'redis' }): boolean =>
  location.redis.some(isClusterClient);

function refuseClusterInQuorum(location: Location): void {
  if (location.kind !== 'redis' || location.redis.length === 1 || !hasCluster(location)) return;
  throw new LockConfigurationError(
    'Option "redis" lists a Redis Cluster among several masters. Each master of a quorum is one server: give the Cluster alone, or ' +
      'independent servers.',
  );
}

function checkRestartGuard(location: Location): void {
  if (location.kind !== 'redis') throw onlyRedis('restartGuard');
  if (hasCluster(location)) {
    throw new LockConfigurationError(
      'Option "restartGuard" does not work on a Redis Cluster: a key that tells a restart would be needed in every slot. Leave it out, ' +
        'and give "replicas" there.',
    );
  }
}

function checkReplicas(
  { timeoutMs }: NonNullable<Values['replicas']>,
  location: Location,
  nodeTimeoutMs: number,
): void {
  if (location.kind !== 'redis') throw onlyRedis('replicas');
  if (location.redis.length > 1) {
    throw new LockConfigurationError(
      'Option "replicas" is for one Redis. The masters of a quorum are independent of each other and need no replicas: a majority of them ' +
        'keeps the locks.',
    );
  }
  if (timeoutMs < nodeTimeoutMs) return;
  throw new LockConfigurationError(
    `Option "replicas.timeout" (${String(timeoutMs)} ms) must be shorter than "nodeTimeout" (${String(nodeTimeoutMs)} ms), in which it is contained.`,
  );
}

const onlyRedis = (option: string): LockConfigurationError =>
  new LockConfigurationError(`Option "${option}" is for locks in Redis: give "redis".`);
