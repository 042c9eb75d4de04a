import { LockConfigurationError } from '../../../errors.js';
import { describe } from '../../../errors/describe.js';

/** The beginnings of the URLs that lead to Redis, as a part of a regular expression. */
const SCHEMES = '(?:rediss?|(?:redis\\+)?unix)://';

const REDIS_URL = new RegExp(`^${SCHEMES}.`);
const BETWEEN_URLS = new RegExp(`\\s*,\\s*(?=${SCHEMES})`);

/** Whether a text begins as the URL of a Redis. Its other parts are not checked. */
export const isRedisUrl = (text: string): boolean => REDIS_URL.test(text);

/** Separates URLs that are in one text, with commas between them. A password may have a comma. */
export const urlsIn = (text: string): readonly string[] => text.split(BETWEEN_URLS);

/** What a URL of a Unix socket says. */
export interface SocketLocation {
  readonly path: string;
  readonly username?: string;
  readonly password?: string;
  /** As it is written: a number, if it is right. */
  readonly database?: string;
}

const SOCKET_URL =
  /^(?:redis\+)?unix:\/\/(?:(?<user>[^:]*)(?::(?<password>.*))?@)?(?<path>\/[^?#@]+)(?:\?db=(?<database>[^&#]*))?$/s;

/**
 * Reads `unix:///run/redis.sock?db=2` and `redis+unix://user:password@/run/redis.sock`. `undefined` for a URL with a host. Node
 * refuses a URL with a user and without a host, so it is not asked.
 *
 * @throws LockConfigurationError for a URL of a Unix socket that leads nowhere
 */
export function socketAt(url: string): SocketLocation | undefined {
  if (!/^(?:redis\+)?unix:/.test(url)) return undefined;
  const { user = '', password, path = '', database } = SOCKET_URL.exec(url)?.groups ?? {};
  try {
    if (path === '') throw new URIError('no path');
    return {
      path: decodeURIComponent(path),
      ...(user !== '' && { username: decodeURIComponent(user) }),
      ...(password !== undefined && { password: decodeURIComponent(password) }),
      ...(database !== undefined && { database }),
    };
  } catch {
    throw new LockConfigurationError(
      `Option "redis" must be a URL such as 'unix:///run/redis.sock?db=2' or 'unix://user:password@/run/redis.sock', ` +
        `received ${describe(url)}. ` +
        'The path begins with a slash, "db" is its only parameter, and encodeURIComponent makes any password fit for a URL.',
    );
  }
}
