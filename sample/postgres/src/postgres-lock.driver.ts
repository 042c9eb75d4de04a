import type { Pool } from 'pg';
import type { LockDriver } from 'nestjs-holdfast';

/** Run it once, with your migrations. */
export const CREATE_TABLE = `
  CREATE TABLE IF NOT EXISTS locks (
    key text COLLATE "C" PRIMARY KEY,
    token text COLLATE "C" NOT NULL,
    expires_at timestamptz NOT NULL
  )`;

const EXPIRY = `now() + $3 * interval '1 millisecond'`;

/**
 * Takes the row if it is missing, expired or ours already, and else tells what is left of the lease. A row that another
 * statement inserts at the same moment is in the way, too, but this statement cannot see it: 0.
 */
const ACQUIRE = `
  WITH taken AS (
    INSERT INTO locks AS held VALUES ($1, $2, ${EXPIRY})
    ON CONFLICT (key) DO UPDATE SET token = excluded.token, expires_at = excluded.expires_at
      WHERE held.expires_at <= now() OR held.token = excluded.token
    RETURNING key
  )
  SELECT
    EXISTS (SELECT FROM taken) AS acquired,
    coalesce(
      (SELECT greatest(0, extract(epoch FROM expires_at - now()) * 1000) FROM locks WHERE key = $1),
      0
    )::float8 AS remaining_ms`;

const EXTEND = `
  UPDATE locks SET expires_at = ${EXPIRY} WHERE key = $1 AND token = $2 AND expires_at > now()`;

/** Removes the row of a lease that is over, too. */
const RELEASE = `
  DELETE FROM locks WHERE key = $1 AND token = $2 RETURNING expires_at > now() AS was_held`;

/**
 * Locks in a table of PostgreSQL. Each operation is one statement, so it is atomic at the isolation level READ COMMITTED,
 * and the clock is that of the server. Give it a pool, not a connection inside a transaction of yours: a lock must be
 * visible to others at once.
 *
 * An advisory lock would not do: it belongs to a connection, which can acquire it again, and it has no expiry.
 */
export class PostgresLockDriver implements LockDriver {
  constructor(private readonly pool: Pick<Pool, 'query'>) {}

  async acquire(key: string, token: string, ttlMs: number) {
    const { rows } = await this.pool.query<{ acquired: boolean; remaining_ms: number }>(ACQUIRE, [
      ...[key, token, ttlMs],
    ]);
    const [row] = rows;
    if (row === undefined) throw new Error('PostgreSQL returned no row.');
    return row.acquired
      ? ({ status: 'acquired' } as const)
      : ({ status: 'held', remainingMs: row.remaining_ms } as const);
  }

  async extend(key: string, token: string, ttlMs: number) {
    const { rowCount } = await this.pool.query(EXTEND, [key, token, ttlMs]);
    return { status: rowCount === 1 ? 'extended' : 'lost' } as const;
  }

  async release(key: string, token: string) {
    const { rows } = await this.pool.query<{ was_held: boolean }>(RELEASE, [key, token]);
    return { status: rows[0]?.was_held === true ? 'released' : 'not-held' } as const;
  }
}
