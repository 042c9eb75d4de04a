import type { Cluster, Redis } from 'ioredis';
import type { Address } from './address.js';

/** A package with the classes of ioredis: another version of it, or iovalkey. */
export interface LikeIoredis {
  readonly Redis: typeof Redis;
  readonly Cluster: typeof Cluster;
}

/** A client that never connects. */
export const likeIoredis =
  (library: LikeIoredis) =>
  (address: Address): object => {
    if (address.kind === 'cluster')
      return new library.Cluster([...address.nodes], { ...address.options, lazyConnect: true });
    const { given } = address;
    return typeof given === 'string'
      ? new library.Redis(given, { lazyConnect: true })
      : new library.Redis({ ...given, lazyConnect: true });
  };
