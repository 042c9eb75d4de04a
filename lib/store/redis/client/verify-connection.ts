import type { RedisClient } from './redis-client.js';
import { isRefusal } from './reply-errors.js';

/** What a connection has to be before it is used. */
export interface Verification {
  /** The number of the database that its commands have to go to. */
  readonly database: number;
  /** Whether the server has to be distinguished from others. */
  readonly readsRun: boolean;
}

/**
 * Makes sure that a new connection leads to the intended server and database, before anything else is sent over it. An
 * address may lead to another server than before, and ioredis continues in database 0 when its own SELECT is refused.
 *
 * Resolves with the id of the server's present run, if that was to be read and the Redis user may read it. Rejects with
 * the server's refusal of the database, or with the error that keeps it from replying.
 */
export async function verifyConnection(
  client: RedisClient,
  { database, readsRun }: Verification,
): Promise<string | undefined> {
  const [, run] = await Promise.all([
    database === 0 ? undefined : select(client, database), // a new connection is in database 0
    readsRun ? runOf(client) : undefined,
  ]);
  return run;
}

async function select(client: RedisClient, database: number): Promise<void> {
  try {
    await client.command('select', database);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    throw new DatabaseRefusal(database, error);
  }
}

/** The server refuses the database until an operator changes a setting. */
export class DatabaseRefusal extends Error {
  constructor(database: number, cause: Error) {
    const number = String(database);
    super(
      `cannot use database ${number}: ${cause.message.replace(/\.$/, '')}. Allow the Redis user the command SELECT ("+select"), ` +
        'or name a database that the server has',
      { cause },
    );
  }
}

async function runOf(client: RedisClient): Promise<string | undefined> {
  try {
    return /^run_id:(\w+)/m.exec(String(await client.command('info', 'server')))?.[1];
  } catch (error) {
    // INFO may be forbidden: then servers cannot be distinguished.
    if (isRefusal(error)) return undefined;
    throw error;
  }
}
