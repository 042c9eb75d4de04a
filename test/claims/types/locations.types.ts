/* What says where Redis is, with the types of each package. Nothing here runs; the compiler holds the library to it. */
import type { GlideClient, GlideClusterClient } from '@valkey/valkey-glide';
import type { Cluster, Redis, RedisOptions } from 'ioredis';
import type * as ioredis5 from 'ioredis-5';
import type * as iovalkey from 'iovalkey';
import type { createClient, createCluster, createSentinel } from 'redis';
import type * as redis5 from 'redis-5';
import { LockModule, type RedisLocation } from '../../../lib/index.js';

type Locations = [
  Redis | Cluster | RedisOptions,
  ioredis5.Redis | ioredis5.Cluster | ioredis5.RedisOptions,
  iovalkey.Redis | iovalkey.Cluster | iovalkey.RedisOptions,
  ReturnType<typeof createClient | typeof createCluster | typeof createSentinel>,
  ReturnType<typeof redis5.createClient | typeof redis5.createCluster>,
  GlideClient | GlideClusterClient,
];

export const isLocation: Locations[number] extends RedisLocation ? true : false = true;

export function options(): void {
  LockModule.forRoot({ redis: { host: 'localhost', db: 2, tls: { servername: 'locks' } } });
  LockModule.forRoot({ redis: { name: 'main', sentinels: [{ host: 'a', port: 26_379 }] } });
  // @ts-expect-error 'maxRetriesPerRequest' does not exist in type
  LockModule.forRoot({ redis: { host: 'localhost', maxRetriesPerRequest: 3 } });
  // @ts-expect-error not assignable to type
  LockModule.forRoot({ redis: 6379 });
}
