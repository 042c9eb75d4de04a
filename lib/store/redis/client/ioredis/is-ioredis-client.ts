import type { Cluster, Redis } from 'ioredis';

/** A client of ioredis. */
export type IoredisClient = Redis | Cluster;

/** By shape: the application may use another copy of ioredis than the one that is found here. */
export function isIoredisClient(value: object): value is IoredisClient {
  const { duplicate, isCluster } = value as Partial<IoredisClient>;
  return typeof duplicate === 'function' && typeof isCluster === 'boolean';
}

/** What ioredis-mock keeps in each of its clients, and no client of ioredis has. */
const OF_A_MOCK = ['shaScripts', 'customCommands', 'keyData'];

/** By shape, too: the package is none of ours, and its classes have no name that lasts. */
export const isMockedClient = (value: object): boolean =>
  OF_A_MOCK.every((name) => Object.hasOwn(value, name));
