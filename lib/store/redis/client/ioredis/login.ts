import { Socket } from 'node:net';
import type { AbstractConnector, Redis, RedisOptions } from 'ioredis';
import type { Runtime } from '../../../../time/runtime.js';
import type { CredentialsProvider, RedisCredentials } from '../client-library.js';
import { credentialsProblem, provided } from '../provided-credentials.js';

const NAMES = ['username', 'password', 'sentinelUsername', 'sentinelPassword'] as const;

/** The options of ioredis that a connection logs in with. */
export type LoginOptions = Readonly<
  Partial<Record<(typeof NAMES)[number], string | null | undefined>>
>;

/** What our connections log in with: found out anew for each of them. */
export interface Login {
  /** Further options of each connection. */
  readonly options?: RedisOptions;
  /** As it is now. */
  readonly read: () => LoginOptions;
  readonly secrets: () => readonly string[];
  /** An attempt to connect has failed before it came to Redis: ioredis makes the next one by itself. */
  readonly beforeRetry?: () => void;
}

/** ioredis reads the options of a connection whenever it connects, so what is read there has to be what is valid then. */
export function logsInWith(login: Login, { options }: Redis): void {
  for (const name of NAMES)
    Object.defineProperty(options, name, {
      ...{ enumerable: true, configurable: true },
      get: () => login.read()[name],
    });
}

/** @param read the options or the client of the application, which may change them */
export const statedLogin = (read: () => LoginOptions): Login => ({
  read,
  secrets: () => secretsOf(read()),
});

interface ProvidedLogin {
  readonly provide: CredentialsProvider;
  /** What is said without the function. */
  readonly stated: Login;
  /** A client that connects in the same way. */
  readonly like: Redis;
  readonly runtime: Runtime;
}

/** By a function of the application, which is called before each connection. */
export function providedLogin({ provide, stated, like, runtime }: ProvidedLogin): Login {
  let latest: RedisCredentials | undefined;
  const renew = async (): Promise<void> => {
    latest = await provided(provide, runtime);
  };
  // ioredis reads these two before it calls the connector, and sends them after it.
  const username = whenSent(() => latest?.username ?? 'default');
  const password = whenSent(() => latest?.password ?? '');
  return {
    options: { Connector: connectorAfter(renew, like) },
    read: () => {
      const { sentinelUsername, sentinelPassword } = { ...stated.read(), ...latest };
      return { username, password, sentinelUsername, sentinelPassword };
    },
    secrets: () => [...stated.secrets(), ...secretsOf(latest ?? {})],
    beforeRetry: () => {
      renew().catch(() => undefined); // the attempt tells what fails
    },
  };
}

const secretsOf = ({ password, sentinelPassword }: LoginOptions): readonly string[] =>
  [password, sentinelPassword].filter((value) => typeof value === 'string');

/** ioredis makes a text of each argument of a command when it creates the command. */
const whenSent = (read: () => string): string => ({ toString: read }) as unknown as string;

/** How ioredis makes a connection. */
type ConnectorClass = new (options: unknown) => AbstractConnector & {
  connect(emit: ErrorEmitter): Promise<Socket>;
};

type ErrorEmitter = (type: string, error: Error) => void;

/** Private to ioredis, which exports only the connector for Sentinel. */
interface WithConnector {
  readonly connector: { readonly constructor: unknown };
}

/** A connector that has the credentials renewed first. */
function connectorAfter(
  renew: () => Promise<void>,
  like: Redis,
): NonNullable<RedisOptions['Connector']> {
  const Usual = (like as unknown as WithConnector).connector.constructor as ConnectorClass;
  return class extends Usual {
    override async connect(emit: ErrorEmitter): Promise<Socket> {
      this.connecting = true;
      const isWanted = (): boolean => this.connecting;
      try {
        await renew();
      } catch (error) {
        // As a connection that fails: ioredis reports why, and tries again. If this rejected, it would never try again.
        this.firstError = credentialsProblem(error);
        return new Socket().destroy();
      }
      // The connection was ended meanwhile.
      if (!isWanted()) throw new Error('the connection closed');
      return super.connect(emit);
    }
  };
}
