import { describe, isRedisUrl, RedisServers, urlsIn } from 'nestjs-holdfast/tools';
import type { GivenOptions } from './options.js';
import { shellWord } from './text/shell-word.js';
import { UsageError } from './usage-error.js';

/** A server that is slow is to be examined, too. */
const LIMIT_MS = 3_000;

/** Which Redis is asked, and for which keys. */
export interface Target {
  readonly redis: RedisServers;
  readonly keyPrefix: string;
  /** As they were given, with passwords. */
  readonly urls: readonly string[];
  readonly isCluster: boolean;
  /** For people: addresses and prefix, never credentials. */
  readonly shown: string;
}

/**
 * There is no default address: a tool that releases locks should not guess the server.
 *
 * @throws UsageError for an address that is missing or wrong
 */
export function targetOf(
  { redis: given, cluster, prefix = 'lock:' }: GivenOptions,
  env: Readonly<Record<string, string | undefined>>,
): Target {
  const from = given === undefined ? 'REDIS_URL' : '--redis';
  const urls = (given ?? [env.REDIS_URL ?? '']).flatMap(separate);
  if (urls.length === 0)
    throw new UsageError(
      'Which Redis? Give --redis redis://localhost:6379, or set REDIS_URL. There is no default.',
    );
  for (const url of urls) {
    if (!isRedisUrl(url))
      throw new UsageError(
        `${from} must be a URL such as redis://localhost:6379, received ${describe(url)}.`,
      );
  }
  const isCluster = cluster === true;
  const redis = new RedisServers({ urls, isCluster, keyPrefix: prefix, timeLimitMs: LIMIT_MS });
  const places = redis.places.map(({ name, database }) =>
    database === 0 ? name : `${name} (database ${String(database)})`,
  );
  return {
    redis,
    keyPrefix: prefix,
    urls,
    isCluster,
    shown: `${places.join(', ')}, prefix ${shellWord(prefix)}`,
  };
}

/** Masters in one text, as they stand in a variable of the environment. */
const separate = (text: string): readonly string[] =>
  urlsIn(text)
    .map((url) => url.trim())
    .filter((url) => url !== '');
