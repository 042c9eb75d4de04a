import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, it } from '@jest/globals';

/** What is used of `node:sqlite`, which Node 20 does not have, nor the types of Node 20. */
interface Database {
  exec(sql: string): void;
  prepare(sql: string): {
    run(values: Readonly<Record<string, unknown>>): { readonly changes: number | bigint };
    get(): unknown;
  };
}

const SQLITE = ['node', 'sqlite'].join(':');
const sqlite = await (
  import(SQLITE) as Promise<{ DatabaseSync: new (path: string) => Database }>
).catch(() => undefined);

const page = readFileSync(new URL('../../docs/fencing.md', import.meta.url), 'utf8');
const [, section = ''] = /\n## PostgreSQL and SQLite\n([^]*?)\n## /.exec(page) ?? [];
const statements = Array.from(
  section.matchAll(/```sql\n([^]*?)```/g),
  ([, sql = '']) => sql,
) as readonly string[] as [string, string, string, string, string];

describe('docs/fencing.md', () => {
  it('has the statements that are run below', () => {
    expect(statements.map((sql) => sql.split(' ')[0])).toEqual([
      'ALTER',
      'UPDATE',
      'INSERT',
      'CREATE',
      'INSERT',
    ]);
  });
});

const describeWhere = sqlite === undefined ? describe.skip : describe;
describeWhere('in SQLite', () => {
  const [addColumn, update, upsert, createFences, moveFence] = statements;
  let database: Database;

  beforeEach(() => {
    database = new sqlite!.DatabaseSync(':memory:');
    database.exec('CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL)');
    database.exec('INSERT INTO account VALUES (7, 100)');
    database.exec('CREATE TABLE report (day TEXT PRIMARY KEY, body TEXT, fence BIGINT NOT NULL)');
    database.exec(addColumn);
    database.exec(createFences);
  });

  const run = (sql: string, ...values: readonly unknown[]): number => {
    const named = Object.fromEntries(values.map((value, index) => [`$${index + 1}`, value]));
    return Number(database.prepare(sql).run(named).changes);
  };

  const [EARLIER, LATER] = [1_764_000_000_000_001, 1_764_000_000_000_002];

  it('an update with a smaller token changes nothing', () => {
    expect(run(update, 10, EARLIER, 7)).toBe(1);
    expect(run(update, 10, EARLIER, 7)).toBe(1);
    expect(run(update, 10, LATER, 7)).toBe(1);
    expect(run(update, 10, EARLIER, 7)).toBe(0);
    expect(run(update, 10, LATER, 8)).toBe(0);
    const row = database.prepare('SELECT balance, fence FROM account').get();
    expect(row).toMatchObject({ balance: 70, fence: LATER });
  });

  it('an upsert with a smaller token changes nothing', () => {
    expect(run(upsert, 'monday', 'first', LATER)).toBe(1);
    expect(run(upsert, 'monday', 'late', EARLIER)).toBe(0);
    expect(run(upsert, 'monday', 'second', LATER)).toBe(1);
    const row = database.prepare('SELECT body, fence FROM report').get();
    expect(row).toMatchObject({ body: 'second', fence: LATER });
  });

  it('a fence of its own does not move back', () => {
    expect(run(moveFence, 'account:7', LATER)).toBe(1);
    expect(run(moveFence, 'account:7', EARLIER)).toBe(0);
    expect(run(moveFence, 'account:7', LATER + 1)).toBe(1);
  });
});
