/** What a developer can run by hand where the installation is left to them. */
export declare const INSTALL_HINT: string;

/**
 * The path of a server program: `$REDIS_SERVER_BIN`, else `redis-server` or `valkey-server` on the PATH.
 *
 * @throws Error if `$REDIS_SERVER_BIN` is set and cannot be run
 */
export declare function findRedisServer(): string | undefined;

/** Like `findRedisServer()`, but installs a server where there is none; throws with instructions if it cannot. */
export declare function ensureRedisServer(log?: (line: string) => void): string;
