/**
 * Starts a server with an empty database, which clients reach by a socket in its folder. Installs one where it can.
 *
 * @throws Error with instructions if there is none
 */
export declare function startPostgres(log?: (line: string) => void): Promise<{
  readonly url: string;
  /** Where its data and its socket are. */
  readonly folder: string;
  readonly pid: number;
  readonly exited: Promise<void>;
  /** Ends it and removes its data. */
  stop(): Promise<void>;
}>;
