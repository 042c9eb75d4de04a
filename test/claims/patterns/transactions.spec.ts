import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ConflictException } from '@nestjs/common';
import { LockLostError, type LockService } from 'nestjs-holdfast';
import { Pool } from 'pg';
import { DataSource } from 'typeorm';
import { startPostgres } from '../../../scripts/postgres-server.mjs';
import { deferred, eventually } from '../../support/eventually.js';
import { guardAgainstOrphans } from '../../support/orphan-guard.js';
import { RedisServer } from '../../support/redis-server.js';
import { StandInPrismaClient } from './prisma-client.js';
import { Services } from './services.js';
import { Account, Transfers, transferWith } from './transactions.js';

type Transfer = (from: string, to: string, amount: number) => Promise<void>;

/** Each commit takes a while, so a lock that ends before it is found out. */
const SLOW_COMMITS = `
  CREATE FUNCTION take_time() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.02); RETURN NULL; END';
  CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON account DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION take_time()`;

/** A server may have to be installed. */
const INSTALL_WITHIN_MS = 300_000;

let postgres: Awaited<ReturnType<typeof startPostgres>>;
let redis: RedisServer;
let one: LockService;
let two: LockService;
let dataSource: DataSource;
let pool: Pool;
const services = new Services();

beforeAll(async () => {
  postgres = await startPostgres(() => undefined);
  guardAgainstOrphans(postgres.pid, postgres.folder, postgres.exited);
  redis = await RedisServer.start();
  pool = new Pool({ connectionString: postgres.url });
  const { url, folder: host } = postgres;
  dataSource = new DataSource({
    ...{ type: 'postgres', url, extra: { host }, entities: [Account], synchronize: true },
  });
  await dataSource.initialize();
  await pool.query(SLOW_COMMITS);
}, INSTALL_WITHIN_MS);

beforeEach(async () => {
  await pool.query("TRUNCATE account; INSERT INTO account VALUES ('ann', 100), ('bob', 100)");
  [one, two] = await Promise.all([services.open(redis.url), services.open(redis.url)]);
});

afterEach(() => services.closeAll());

afterAll(async () => {
  await Promise.all([dataSource.destroy(), pool.end()]);
  await Promise.all([postgres.stop(), redis.stop()]);
});

async function balances(): Promise<Record<string, number>> {
  const { rows } = await pool.query<Account>('SELECT * FROM account ORDER BY id');
  return Object.fromEntries(rows.map(({ id, balance }) => [id, balance]));
}

const CLIENTS: [string, (locks: LockService) => Transfer][] = [
  [
    'TypeORM',
    (locks) => {
      const transfers = new Transfers(locks, dataSource);
      return (...args) => transfers.transfer(...args);
    },
  ],
  ['Prisma', (locks) => transferWith(locks, new StandInPrismaClient(pool))],
];

describe.each(CLIENTS)('a lock around a transaction of %s', (_name, transferOf) => {
  it('lets each transfer read what the one before has committed, in two processes', async () => {
    const [first, second] = [transferOf(one), transferOf(two)];
    await Promise.all([
      first('ann', 'bob', 10),
      second('bob', 'ann', 20),
      first('ann', 'bob', 30),
      second('ann', 'bob', 40),
    ]);
    expect(await balances()).toEqual({ ann: 40, bob: 160 });
    await expect(first('ann', 'bob', 50)).rejects.toThrow(ConflictException);
    expect(await balances()).toEqual({ ann: 40, bob: 160 });
  });

  it('rolls back if the lock was lost', async () => {
    const lost = deferred();
    one.on('lost', () => {
      lost.resolve();
    });
    const other = await pool.connect();
    await other.query("BEGIN; SELECT FROM account WHERE id = 'bob' FOR UPDATE");
    const transfer = expect(transferOf(one)('ann', 'bob', 10)).rejects.toThrow(LockLostError);
    await eventually(async () => (await two.inspect('account:ann')).held);
    await two.forceRelease('account:ann');
    await lost.promise;
    await other.query('COMMIT');
    other.release();
    await transfer;
    expect(await balances()).toEqual({ ann: 100, bob: 100 });
  });
});
