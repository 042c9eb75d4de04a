interface HostAndPort {
  readonly host?: string | undefined;
  readonly port?: number | undefined;
}

/**
 * Says where Redis is, by the names that ioredis gives to options. Its other options are for commands of the application's, and would have
 * no effect. Written out, so that an application needs ioredis neither to run nor to compile.
 */
export interface IoredisOptions extends HostAndPort {
  /** The path of a Unix socket. */
  readonly path?: string | undefined;
  /** The version of IP: 4 or 6. */
  readonly family?: number | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** The number of the database. Default: 0. */
  readonly db?: number | undefined;
  readonly keyPrefix?: string | undefined;
  /** As `tls.connect()` of Node takes them. */
  readonly tls?: object | undefined;
  /** In ms. */
  readonly connectTimeout?: number | undefined;
  /** In ms. */
  readonly keepAlive?: number | undefined;
  readonly noDelay?: boolean | undefined;
  /** The version of RESP. */
  readonly protocol?: 2 | 3 | undefined;
  readonly sentinels?: readonly HostAndPort[] | undefined;
  /** The name of the group behind Sentinel. */
  readonly name?: string | undefined;
  readonly sentinelUsername?: string | undefined;
  readonly sentinelPassword?: string | undefined;
  readonly enableTLSForSentinelMode?: boolean | undefined;
  /** As `tls`, for the sentinels. */
  readonly sentinelTLS?: object | undefined;
  readonly updateSentinels?: boolean | undefined;
  readonly sentinelMaxConnections?: number | undefined;
  readonly failoverDetector?: boolean | undefined;
  /** Other addresses for those that the sentinels name: an object or a function. */
  readonly natMap?: object | undefined;
}

/** A client of ioredis or iovalkey, `Redis` or `Cluster`, as far as it is looked at. */
export interface IoredisClient {
  readonly isCluster: boolean;
  duplicate(...args: never[]): unknown;
}

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
