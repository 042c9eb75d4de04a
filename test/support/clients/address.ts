import { Cluster, Redis, type ClusterOptions, type RedisOptions } from 'ioredis';
import type { RedisLocation } from '../../../lib/store/redis/client/redis-location.js';

/** Where a test says that Redis is. */
export type Address =
  | {
      readonly kind: 'single' | 'sentinel';
      /** What the test gave. */
      readonly given: string | RedisOptions;
      /** The same, as ioredis reads it. */
      readonly options: RedisOptions;
    }
  | {
      readonly kind: 'cluster';
      readonly nodes: readonly RedisOptions[];
      readonly options: ClusterOptions;
    };

/** Private to ioredis: the addresses of nodes that it has not connected to. */
interface WithStartupNodes {
  readonly startupNodes: readonly RedisOptions[];
}

/**
 * `undefined` for a client of one server, which a test gives where it is about that client, and for what is no address.
 * A client of a Cluster only says where the Cluster is.
 */
export function addressOf(location: RedisLocation): Address | undefined {
  if (location instanceof Cluster) {
    const { startupNodes: nodes } = location as unknown as WithStartupNodes;
    const areKnown = nodes.every((node) => typeof node === 'object');
    return areKnown ? { kind: 'cluster', nodes, options: location.options } : undefined;
  }
  const isClient =
    typeof location === 'object' && ('duplicate' in location || 'customCommand' in location);
  const options = isClient ? undefined : optionsOf(location as string | RedisOptions);
  if (options === undefined) return undefined;
  const kind = (options.sentinels ?? []).length > 0 ? 'sentinel' : 'single';
  return { kind, given: location as string | RedisOptions, options };
}

function optionsOf(location: string | RedisOptions): RedisOptions | undefined {
  const own = { lazyConnect: true };
  try {
    const { options } =
      typeof location === 'string' ? new Redis(location, own) : new Redis({ ...location, ...own });
    return options;
  } catch {
    return undefined; // the library says what is wrong with it
  }
}
