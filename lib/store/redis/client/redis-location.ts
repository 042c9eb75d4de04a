import type { Runtime } from '../../../time/runtime.js';
import type { ClientLibrary, CredentialsProvider } from './client-library.js';
import type { IoredisClient, IoredisOptions } from './ioredis/ioredis-shape.js';
import { sourceAt } from './default-library.js';
import type { GlideClient } from './glide/glide-shape.js';
import { glideLibrary } from './glide/glide-source.js';
import { ioredisLibrary } from './ioredis/redis-source.js';
import type { NodeRedisClient } from './node-redis/node-redis-shape.js';
import { nodeRedisLibrary } from './node-redis/node-redis-source.js';
import type { RedisSource } from './redis-client.js';

/** A client of the application's, which is asked for its address and credentials only. */
export type LocatedClient = IoredisClient | NodeRedisClient | GlideClient;

/** Says where Redis is: a URL, ioredis options, or a client of the application's. */
export type RedisLocation = string | IoredisOptions | LocatedClient;

const LIBRARIES = [
  ioredisLibrary,
  nodeRedisLibrary,
  glideLibrary,
] as readonly ClientLibrary<LocatedClient>[];

const libraryOf = (value: unknown): ClientLibrary<LocatedClient> | undefined =>
  typeof value === 'object' && value !== null
    ? LIBRARIES.find((library) => library.isClient(value))
    : undefined;

/** Whether it is a client of a package that is known here. */
export const isLocatedClient = (value: unknown): value is LocatedClient =>
  libraryOf(value) !== undefined;

/** Whether it is a client of a Redis Cluster. */
export const isClusterClient = (location: RedisLocation): boolean =>
  isLocatedClient(location) && libraryOf(location)?.isCluster(location) === true;

/**
 * @param provide what its connections log in with. Default: what the location says at that moment
 * @throws LockConfigurationError for a location that leads nowhere
 */
export function redisSource(
  location: RedisLocation,
  runtime: Runtime,
  provide?: CredentialsProvider,
): RedisSource {
  const library = libraryOf(location);
  return library !== undefined && isLocatedClient(location)
    ? library.source(location, runtime, provide)
    : sourceAt(location as string | IoredisOptions, runtime, provide);
}
