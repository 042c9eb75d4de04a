import type { Runtime } from '../../../../time/runtime.js';
import type { CredentialsProvider, RedisCredentials } from '../client-library.js';
import { credentialsProblem, provided } from '../provided-credentials.js';
import type { NodeCredentialsProvider, NodeOptions } from './node-redis-shape.js';

/** Options of node-redis that a connection logs in with. */
export interface LoginOptions {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly credentialsProvider?: NodeCredentialsProvider | undefined;
}

/** What our connections log in with: found out anew for each of them. */
export class NodeRedisLogin {
  readonly #runtime: Runtime;
  readonly #provide: CredentialsProvider | undefined;
  /** The secrets that were seen last. */
  readonly #secrets = new Map<string, string>();

  /** @param provide the option `credentials`; without it a connection logs in as the client would */
  constructor(runtime: Runtime, provide: CredentialsProvider | undefined) {
    this.#runtime = runtime;
    this.#provide = provide;
  }

  get secrets(): readonly string[] {
    return [...this.#secrets.values()];
  }

  /** @param stated the options of the client at this moment */
  optionsFor(stated: NodeOptions): LoginOptions {
    return this.#options(stated, ({ username, password }) => ({ username, password }));
  }

  /** The same at the sentinels. */
  optionsForSentinel(stated: NodeOptions): LoginOptions {
    return this.#options(stated, ({ sentinelUsername, sentinelPassword }) =>
      sentinelPassword === undefined
        ? stated
        : { username: sentinelUsername, password: sentinelPassword },
    );
  }

  #options(stated: NodeOptions, of: (given: RedisCredentials) => LoginOptions): LoginOptions {
    this.#remember('stated', stated.password);
    const provide = this.#provide;
    const own = stated.credentialsProvider;
    if (provide === undefined) {
      const ask = own?.credentials?.bind(own);
      if (own === undefined || ask === undefined || own.type !== 'async-credentials-provider')
        return { ...pick(stated), credentialsProvider: own };
      return this.#asking(ask);
    }
    return this.#asking(async () => {
      try {
        return of(await provided(provide, this.#runtime));
      } catch (error) {
        throw credentialsProblem(error);
      }
    });
  }

  /** node-redis asks before each connection. */
  #asking(ask: () => Promise<LoginOptions>): LoginOptions {
    const credentials = async (): Promise<{ username?: string; password?: string }> => {
      const { username, password } = await ask();
      this.#remember('given', password);
      return { ...(username && { username }), ...(password && { password }) };
    };
    return {
      username: undefined,
      password: undefined,
      credentialsProvider: { type: 'async-credentials-provider', credentials },
    };
  }

  #remember(from: string, secret: string | undefined): void {
    if (secret) this.#secrets.set(from, secret);
  }
}

const pick = ({ username, password }: LoginOptions): LoginOptions => ({ username, password });
