import type { Runtime } from '../../../time/runtime.js';
import type { RedisSource } from './redis-client.js';

/** What a connection to Redis logs in with. */
export interface RedisCredentials {
  /** Default: the user of Redis that is called `default`. */
  readonly username?: string;
  /** A password or a token. */
  readonly password: string;
  /** The user at the sentinels. Default: as `redis` says. */
  readonly sentinelUsername?: string;
  /** The password at the sentinels. Default: as `redis` says. */
  readonly sentinelPassword?: string;
}

/** What to log in with: called before each connection. */
export type CredentialsProvider = () => RedisCredentials | Promise<RedisCredentials>;

/** A package whose clients say where Redis is. */
export interface ClientLibrary<Client extends object> {
  /** By shape: the application may use another copy of the package than the one that is found here. */
  isClient(value: object): value is Client;
  isCluster(client: Client): boolean;
  /**
   * @param provide what its connections log in with. Default: what the client says at that moment
   * @throws LockConfigurationError for a client that leads nowhere
   */
  source(client: Client, runtime: Runtime, provide?: CredentialsProvider): RedisSource;
}
