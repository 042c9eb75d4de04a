import { readFileSync } from 'node:fs';
import { compileFunction } from 'node:vm';
import { PGlite } from '@electric-sql/pglite';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { BadRequestException, Body, Controller, Headers, Param, Put } from '@nestjs/common';
import { LockFencedError } from 'nestjs-holdfast';
import ts from 'typescript';
import { closeHttpApps, startHttpApp } from '../../nest/http-app.js';
import { samplesIn } from './samples.js';

/** What is used of `node:sqlite`, which Node 20 does not have, nor the types of Node 20. */
interface SqliteDatabase {
  exec(sql: string): void;
  prepare(sql: string): {
    run(values: Readonly<Record<string, unknown>>): { readonly changes: number | bigint };
    get(): unknown;
  };
}

const SQLITE = ['node', 'sqlite'].join(':');
const sqlite = await (
  import(SQLITE) as Promise<{ DatabaseSync: new (path: string) => SqliteDatabase }>
).catch(() => undefined);

/** A database that runs the statements of the page. */
interface Database {
  /** Statements without values. */
  exec(sql: string): Promise<unknown>;
  /** Resolves with how many rows it changed. */
  run(sql: string, ...values: readonly unknown[]): Promise<number>;
  /** The only row of a table. */
  row(sql: string): Promise<unknown>;
  close(): Promise<void>;
}

const inSqlite = async (): Promise<Database> => {
  const database = new sqlite!.DatabaseSync(':memory:');
  return {
    exec: async (sql) => database.exec(sql),
    run: async (sql, ...values) => {
      const named = Object.fromEntries(values.map((value, index) => [`$${index + 1}`, value]));
      return Number(database.prepare(sql).run(named).changes);
    },
    row: async (sql) => database.prepare(sql).get(),
    close: async () => undefined,
  };
};

/** PostgreSQL itself, compiled to WebAssembly. */
const inPostgres = async (): Promise<Database> => {
  const database = await PGlite.create();
  return {
    exec: (sql) => database.exec(sql),
    run: async (sql, ...values) => (await database.query(sql, [...values])).affectedRows ?? 0,
    row: async (sql) => (await database.query(sql)).rows[0],
    close: () => database.close(),
  };
};

const read = (name: string): string =>
  readFileSync(new URL(`../../../${name}`, import.meta.url), 'utf8');
const PAGE = 'docs/by-hand.md';
const PROMISES = 'docs/internals/promises.md';
const page = read(PAGE);
const [, section = ''] = /\n### PostgreSQL and SQLite\n([^]*?)\n### /.exec(page) ?? [];
const statements = Array.from(
  section.matchAll(/```sql\n([^]*?)```/g),
  ([, sql = '']) => sql,
) as readonly string[] as [string, string, string, string, string];

/** The sample of a page that contains this, with these names in place of imports: what it declares under the name `result`. */
function ranSample<T>(
  of: string,
  contains: string,
  names: Readonly<Record<string, unknown>>,
  result: string,
): T {
  const { code } = samplesIn(of, read(of)).find((sample) => sample.code.includes(contains))!;
  const source = code.replaceAll(/^import .*\n/gm, '').replaceAll(/^export /gm, '');
  const { outputText } = ts.transpileModule(`${source}\nreturn ${result};`, {
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      experimentalDecorators: true,
      emitDecoratorMetadata: true,
    },
  });
  const run = compileFunction(outputText, Object.keys(names)) as (...values: unknown[]) => T;
  return run(...Object.values(names));
}

describe(PAGE, () => {
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

const [EARLIER, LATER] = [1_764_000_000_000_001, 1_764_000_000_000_002];

/** The databases that there are. */
const DATABASES: [string, () => Promise<Database>][] = [
  ['PostgreSQL', inPostgres],
  ...(sqlite === undefined ? [] : ([['SQLite', inSqlite]] as [string, () => Promise<Database>][])),
];

describe.each(DATABASES)('in %s', (_name, open) => {
  const [addColumn, update, upsert, createFences, moveFence] = statements;
  let database: Database;

  beforeAll(async () => {
    database = await open();
    await database.exec('CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL)');
    await database.exec('INSERT INTO account VALUES (7, 100)');
    await database.exec(
      'CREATE TABLE report (day TEXT PRIMARY KEY, body TEXT, fence BIGINT NOT NULL)',
    );
    await database.exec(addColumn);
    await database.exec(createFences);
  });

  afterAll(() => database.close());

  it('an update with a smaller token changes nothing', async () => {
    expect(await database.run(update, 10, EARLIER, 7)).toBe(1);
    expect(await database.run(update, 10, EARLIER, 7)).toBe(1);
    expect(await database.run(update, 10, LATER, 7)).toBe(1);
    expect(await database.run(update, 10, EARLIER, 7)).toBe(0);
    expect(await database.run(update, 10, LATER, 8)).toBe(0);
    const row = await database.row('SELECT balance, fence FROM account');
    expect(row).toMatchObject({ balance: 70, fence: LATER });
  });

  it('an upsert with a smaller token changes nothing', async () => {
    expect(await database.run(upsert, 'monday', 'first', LATER)).toBe(1);
    expect(await database.run(upsert, 'monday', 'late', EARLIER)).toBe(0);
    expect(await database.run(upsert, 'monday', 'second', LATER)).toBe(1);
    const row = await database.row('SELECT body, fence FROM report');
    expect(row).toMatchObject({ body: 'second', fence: LATER });
  });

  it('a fence of its own does not move back', async () => {
    expect(await database.run(moveFence, 'account:7', LATER)).toBe(1);
    expect(await database.run(moveFence, 'account:7', EARLIER)).toBe(0);
    expect(await database.run(moveFence, 'account:7', LATER + 1)).toBe(1);
  });
});

describe('behind a service over HTTP', () => {
  afterEach(closeHttpApps);

  it('a request with a smaller token is answered with 409, and changes nothing', async () => {
    const shipment = { id: '42', state: 'new', fence: 0 };
    const db = {
      query: async (sql: string, [state, fence, id]: [string, number, string]) => {
        expect(sql).toBe(
          'UPDATE shipment SET state = $1, fence = $2 WHERE id = $3 AND fence <= $2',
        );
        if (id !== shipment.id || shipment.fence > fence) return { rowCount: 0 };
        Object.assign(shipment, { state, fence });
        return { rowCount: 1 };
      },
    };
    const names = {
      db,
      LockFencedError,
      BadRequestException,
      Body,
      Controller,
      Headers,
      Param,
      Put,
    };
    const controller = ranSample<new () => object>(
      PAGE,
      'class ShippingController',
      names,
      'ShippingController',
    );
    const { get } = await startHttpApp({ controllers: [controller] });
    const put = (state: string, token: number) =>
      get('/orders/42', {
        method: 'PUT',
        headers: { 'content-type': 'application/json', 'x-fencing-token': String(token) },
        body: JSON.stringify({ state }),
      });
    expect(await put('new', 1)).toMatchObject({ status: 200 });

    expect(await put('packed', 2)).toMatchObject({ status: 200 });
    expect(shipment.state).toBe('packed');
    expect(await put('new', shipment.fence - 1)).toMatchObject({
      status: 409,
      body: { code: 'LOCK_FENCED' },
    });
    expect(shipment.state).toBe('packed');

    const without = await get('/orders/42', {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: '{"state":"new"}',
    });
    expect(without).toMatchObject({ status: 400 });
    expect(shipment.state).toBe('packed');
  });
});

describe('in an object store', () => {
  interface Found {
    readonly etag: string;
    readonly fence: number;
  }

  /** As S3 does it: conditions are compared in the moment of the write. */
  class Bucket {
    readonly objects = new Map<string, Found & { readonly body: string }>();
    readonly outcomes: string[] = [];
    /** What happens between the look and the write. */
    meanwhile = (): void => undefined;
    #writes = 0;

    head = async (name: string): Promise<Found | undefined> => this.objects.get(name);

    put = async (
      name: string,
      body: string,
      { fence, ifMatch, ifNoneMatch }: { fence: number; ifMatch?: string; ifNoneMatch?: '*' },
    ): Promise<'written' | 'precondition failed'> => {
      this.meanwhile();
      const found = this.objects.get(name);
      const isMet = ifNoneMatch === '*' ? found === undefined : found?.etag === ifMatch;
      const outcome = isMet ? 'written' : 'precondition failed';
      if (isMet) this.write(name, body, fence);
      this.outcomes.push(outcome);
      return outcome;
    };

    write(name: string, body: string, fence: number): void {
      this.objects.set(name, { body, fence, etag: `"${String((this.#writes += 1))}"` });
    }
  }

  let bucket: Bucket;
  let putFenced: (name: string, body: string, fencingToken: number) => Promise<void>;

  beforeEach(() => {
    bucket = new Bucket();
    putFenced = ranSample(
      PROMISES,
      'async function putFenced',
      { bucket, LockFencedError },
      'putFenced',
    );
  });

  it('a write with a smaller token is refused, and one with the same is not', async () => {
    await putFenced('report', 'first', LATER);
    await putFenced('report', 'second', LATER);
    await expect(putFenced('report', 'late', EARLIER)).rejects.toThrow(LockFencedError);
    expect(bucket.objects.get('report')).toMatchObject({ body: 'second', fence: LATER });
  });

  it('a write of any other caller between the look and the write is detected', async () => {
    const once = (write: () => void): void => {
      bucket.meanwhile = () => {
        bucket.meanwhile = () => undefined;
        write();
      };
    };
    once(() => bucket.write('report', 'later', LATER));
    await expect(putFenced('report', 'late', EARLIER)).rejects.toThrow(LockFencedError);
    expect(bucket.objects.get('report')).toMatchObject({ body: 'later', fence: LATER });

    once(() => bucket.write('report', 'earlier', EARLIER));
    await putFenced('report', 'right', LATER);
    expect(bucket.objects.get('report')).toMatchObject({ body: 'right', fence: LATER });
    expect(bucket.outcomes).toEqual(['precondition failed', 'precondition failed', 'written']);
  });
});
