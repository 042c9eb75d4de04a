import type { Pool } from 'pg';
import { type PoolClient } from 'pg';

/** What `prisma generate` 7 declares for `model Account { id String @id  balance Int }`, as far as the recipe uses it. */
export interface PrismaClient {
  readonly account: AccountDelegate;
  $transaction<R>(
    work: (tx: Omit<PrismaClient, '$transaction'>) => Promise<R>,
    options?: { maxWait?: number; timeout?: number },
  ): Promise<R>;
}

interface Account {
  id: string;
  balance: number;
}

type Change = number | { increment: number } | { decrement: number };

interface AccountDelegate {
  findUniqueOrThrow(args: { where: { id: string } }): Promise<Account>;
  update(args: { where: { id: string }; data: { balance: Change } }): Promise<Account>;
}

/** Stands for the client that Prisma generates, whose tools are larger than this project. Its transactions are those of PostgreSQL. */
export class StandInPrismaClient implements PrismaClient {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  get account(): AccountDelegate {
    return accountsOver(this.#pool);
  }

  async $transaction<R>(work: (tx: Omit<PrismaClient, '$transaction'>) => Promise<R>): Promise<R> {
    const connection = await this.#pool.connect();
    try {
      await connection.query('BEGIN');
      const result = await work({ account: accountsOver(connection) });
      await connection.query('COMMIT');
      return result;
    } catch (error) {
      await connection.query('ROLLBACK');
      throw error;
    } finally {
      connection.release();
    }
  }
}

function accountsOver(connection: Pool | PoolClient): AccountDelegate {
  const one = async (sql: string, ...values: readonly unknown[]): Promise<Account> => {
    const { rows } = await connection.query<Account>(sql, [...values]);
    const [row] = rows;
    if (row === undefined) throw new Error('There is no such account.');
    return row;
  };
  return {
    findUniqueOrThrow: ({ where: { id } }) => one('SELECT * FROM account WHERE id = $1', id),
    update: ({ where: { id }, data: { balance } }) => {
      if (typeof balance === 'number')
        return one('UPDATE account SET balance = $2 WHERE id = $1 RETURNING *', id, balance);
      const by = 'increment' in balance ? balance.increment : -balance.decrement;
      return one('UPDATE account SET balance = balance + $2 WHERE id = $1 RETURNING *', id, by);
    },
  };
}
