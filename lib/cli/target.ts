import { describe } from '../errors/describe.js';
import { clusterAt, redisSource, type RedisLocation } from '../store/redis/client/redis-source.js';
import type { RedisSource } from '../store/redis/client/redis-client.js';
import type { Runtime } from '../time/runtime.js';
import type { GivenOptions } from './options.js';
import { UsageError } from './usage-error.js';

/** Which Redis is asked, and for which keys. */
export interface Target {
  readonly locations: readonly RedisLocation[];
  /** One for each location; not connected. */
  readonly sources: readonly RedisSource[];
  readonly keyPrefix: string;
  /** For people: addresses and prefix, never credentials. */
  readonly shown: string;
}

/**
 * There is no default address: a tool that releases locks should not guess the server.
 *
 * @throws UsageError for an address that is missing or wrong
 */
export function targetOf(
  { redis, cluster, prefix = 'lock:' }: GivenOptions,
  env: Readonly<Record<string, string | undefined>>,
  runtime: Runtime,
): Target {
  const from = redis === undefined ? 'REDIS_URL' : '--redis';
  const urls = (redis ?? [env.REDIS_URL ?? '']).flatMap(separate);
  if (urls.length === 0)
    throw new UsageError(
      'Which Redis? Give --redis redis://localhost:6379, or set REDIS_URL. There is no default.',
    );
  for (const url of urls) {
    if (!/^rediss?:\/\/./.test(url))
      throw new UsageError(
        `${from} must be a URL such as redis://localhost:6379, received ${describe(url)}.`,
      );
  }
  const locations = cluster === true ? [clusterAt(urls)] : urls;
  const sources = locations.map((location) => redisSource(location, runtime));
  const places = sources.map(({ name, database }) =>
    database === 0 ? name : `${name} (database ${String(database)})`,
  );
  return { locations, sources, keyPrefix: prefix, shown: `${places.join(', ')}, prefix ${prefix}` };
}

/** Masters in one text, as they stand in a variable of the environment. A password may have a comma. */
const separate = (text: string): readonly string[] =>
  text
    .split(/\s*,\s*(?=rediss?:\/\/)/)
    .map((url) => url.trim())
    .filter((url) => url !== '');
