import type { RedisLocation } from './redis-source.js';

type RedisClient = Extract<RedisLocation, { readonly isCluster: boolean }>;

/** By shape: the application may use another copy of ioredis than the one we import. */
export function isRedisClient(value: unknown): value is RedisClient {
  if (typeof value !== 'object' || value === null) return false;
  const { duplicate, isCluster } = value as Partial<RedisClient>;
  return typeof duplicate === 'function' && typeof isCluster === 'boolean';
}
