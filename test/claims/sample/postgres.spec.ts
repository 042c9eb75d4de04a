import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import { driverSuite } from 'nestjs-holdfast/testing';
import {
  CREATE_TABLE,
  PostgresLockDriver,
} from '../../../sample/postgres/src/postgres-lock.driver.js';
import { startPostgres } from '../../../scripts/postgres-server.mjs';
import { guardAgainstOrphans } from '../../support/orphan-guard.js';
import { Program } from './program.js';

let server: Awaited<ReturnType<typeof startPostgres>>;
const pools: Pool[] = [];

/** Connections of a process of their own. */
function poolOn(connectionString: string): Pool {
  const pool = new Pool({ connectionString });
  pools.push(pool);
  return pool;
}

/** A server may have to be installed. */
const INSTALL_WITHIN_MS = 300_000;

beforeAll(async () => {
  server = await startPostgres(() => undefined);
  guardAgainstOrphans(server.pid, server.folder, server.exited);
  await poolOn(server.url).query(CREATE_TABLE);
}, INSTALL_WITHIN_MS);

afterAll(async () => {
  await Promise.all(pools.map((pool) => pool.end()));
  await server.stop();
});

describe('the driver for PostgreSQL', () => {
  const suite = driverSuite({
    open: () => new PostgresLockDriver(poolOn(server.url)),
    openUnreachable: () =>
      new PostgresLockDriver(poolOn(server.url.replace(/host=.*/, 'host=/nowhere'))),
  });

  it.each(suite)('$name', ({ check }) => check());
});

describe('npm run sample:postgres', () => {
  it('pays an order one call at a time, whichever application asks', async () => {
    const sample = new Program('sample/postgres/src/main.ts', { DATABASE_URL: server.url });
    expect(await sample.ended).toEqual({ code: 0, signal: null });
    expect(sample.output).toContain('postgres: 10 payments, at most 1 at once');
    const { rows } = await poolOn(server.url).query("SELECT key FROM locks WHERE key ~ '^lock:'");
    expect(rows).toEqual([]);
  }, 60_000);
});
