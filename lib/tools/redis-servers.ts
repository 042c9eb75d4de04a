import type { NodeFailure } from '../errors.js';
import { RedisConnection } from '../store/redis/client/redis-connection.js';
import type { RedisSource } from '../store/redis/client/redis-client.js';
import { clusterAt } from '../store/redis/client/default-library.js';
import { redisSource, type RedisLocation } from '../store/redis/client/redis-location.js';
import { systemRuntime } from '../time/runtime.js';
import { Scheduler } from '../time/scheduler.js';
import { RedisServer } from './redis-server.js';

/** How to reach the servers of the locks. */
export interface RedisServersOptions {
  /** The URL of each independent master, or those of some nodes of a Cluster. */
  readonly urls: readonly string[];
  readonly isCluster: boolean;
  /** The `keyPrefix` of the locks. */
  readonly keyPrefix: string;
  /** How long each request may take. */
  readonly timeLimitMs: number;
}

/** The servers to which a connection was made. */
export interface ReachedServers {
  /** The masters, of a Cluster. */
  readonly servers: readonly RedisServer[];
  /** The addresses where none can be used, and why. */
  readonly away: readonly NodeFailure[];
}

/** The Redis servers where locks are, for a program that examines them. */
export class RedisServers {
  /** The option `redis` of `createLocks`. */
  readonly locations: RedisLocation[];
  /** For people: addresses and databases, never credentials. */
  readonly places: readonly Pick<RedisSource, 'name' | 'database' | 'isCluster'>[];
  readonly #sources: readonly RedisSource[];
  readonly #keyPrefix: string;
  readonly #timeLimitMs: number;

  /** @throws LockConfigurationError for a URL that is wrong */
  constructor({ urls, isCluster, keyPrefix, timeLimitMs }: RedisServersOptions) {
    this.locations = isCluster ? [clusterAt(urls)] : [...urls];
    this.#sources = this.locations.map((location) => redisSource(location, systemRuntime));
    this.places = this.#sources;
    this.#keyPrefix = keyPrefix;
    this.#timeLimitMs = timeLimitMs;
  }

  /** Connects, runs `work`, and closes the connections. */
  async connected<T>(work: (reached: ReachedServers) => Promise<T>): Promise<T> {
    const scheduler = new Scheduler(systemRuntime);
    const opened = this.#sources.map((source) => ({
      source,
      connection: new RedisConnection(source, scheduler, NOTHING_TO_NOTE),
    }));
    try {
      const reached = await Promise.all(opened.map((each) => this.#reach(each)));
      return await work({
        servers: reached.flatMap(({ servers }) => servers),
        away: reached.flatMap(({ away }) => away),
      });
    } finally {
      for (const { connection } of opened) connection.close();
      scheduler.toBackground();
    }
  }

  async #reach({ source, connection }: Opened): Promise<ReachedServers> {
    const timeLimitMs = this.#timeLimitMs;
    const there = await connection.look(timeLimitMs, () => Promise.resolve());
    if (there.status === 'unavailable') return { servers: [], away: there.nodes };
    const { client } = connection;
    const masters =
      client.kind === 'single'
        ? [{ name: source.name, command: client.command.bind(client) }]
        : client
            .masters()
            .map((master) => ({ name: master.address, command: master.command.bind(master) }));
    const prefix = source.keyPrefix + this.#keyPrefix;
    const common = { prefix, database: source.database, connection, timeLimitMs };
    return { servers: masters.map((each) => new RedisServer({ ...common, ...each })), away: [] };
  }
}

interface Opened {
  readonly source: RedisSource;
  readonly connection: RedisConnection;
}

const ignore = (): void => undefined;

/** The replies say enough, so the events of a connection are ignored. */
const NOTHING_TO_NOTE = {
  readsRun: false,
  onLost: ignore,
  onThere: ignore,
  onRefused: ignore,
  onSlots: ignore,
} as const;
