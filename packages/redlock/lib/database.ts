import type { RedisLocation } from 'nestjs-holdfast';

/** A client of one server. */
interface Single {
  duplicate(options: object): RedisLocation;
}

type Client = Extract<RedisLocation, { duplicate: unknown; isCluster: boolean }>;

const isClient = (location: RedisLocation): location is Client =>
  typeof location === 'object' && 'duplicate' in location && 'isCluster' in location;

/**
 * The same server with another database.
 *
 * @param db `undefined`: that of the client
 */
export function inDatabase(location: RedisLocation, db: number | undefined): RedisLocation {
  if (db === undefined) return location;
  if (!Number.isInteger(db) || db < 0)
    throw new Error(`The setting db must be the number of a database, received ${String(db)}.`);
  if (!isClient(location))
    throw new Error(
      'The setting db needs clients of ioredis. Name the database in the URL or options.',
    );
  // Never connected: only its options are read.
  if (!location.isCluster) return (location as Single).duplicate({ db, lazyConnect: true });
  if (db === 0) return location;
  throw new Error(`A Cluster has database 0 only, and the setting db is ${String(db)}.`);
}
