import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import type { CronJob } from 'cron';
import { LockModule, LockService } from 'nestjs-holdfast';
import { ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { closeApps, startApp } from '../../nest/module/start-app.js';
import { deferred, eventually } from '../../support/eventually.js';
import { RedisServer } from '../../support/redis-server.js';
import {
  Documents,
  Imports,
  InvoiceJob,
  Invoices,
  Mails,
  NightlyImport,
  Payments,
  Prices,
} from './recipes.js';
import { Services } from './services.js';

const textOf = (file: string): string => readFileSync(new URL(file, import.meta.url), 'utf8');

let server: RedisServer;
let one: LockService;
let two: LockService;
const services = new Services();

beforeAll(async () => {
  server = await RedisServer.start();
});

beforeEach(async () => {
  await server.command('FLUSHALL');
  [one, two] = await Promise.all([services.open(server.url), services.open(server.url)]);
});

afterEach(() => services.closeAll());

afterAll(() => server.stop());

it('each sample of the page is a recipe that a spec of this folder runs', () => {
  const [, page = ''] =
    /^([^]*?^## A shutdown in Kubernetes$[^]*?)^## /m.exec(textOf('../../../docs/recipes.md')) ??
    [];
  const samples = Array.from(page.matchAll(/^```ts\n([^]*?)^```$/gm), ([, code]) => code);
  const recipes = ['recipes.ts', 'transactions.ts', 'application.ts'].flatMap((file) =>
    Array.from(textOf(file).matchAll(/^\/\/ recipe\n([^]*?)^\/\/ end$/gm), ([, code]) => code),
  );
  expect(recipes.length).toBeGreaterThan(10);
  expect(samples.toSorted()).toEqual(recipes.toSorted());
});

describe('in two processes', () => {
  it('a payment is made once, and both callers get its receipt', async () => {
    const charged: string[] = [];
    const provider = {
      charge: (order: string, { idempotencyKey }: { idempotencyKey: string }) => {
        charged.push(idempotencyKey);
        return Promise.resolve(`receipt of ${order}`);
      },
    };
    const receipts = [one, two, one].map((locks) => new Payments(locks, provider).pay('7'));
    expect(new Set(await Promise.all(receipts))).toEqual(new Set(['receipt of 7']));
    expect(charged).toEqual(['pay:7']);
  });

  it('a payment that has failed three times is a conflict, and not a success', async () => {
    const refused = new Error('no money');
    const payments = new Payments(one, { charge: () => Promise.reject(refused) });
    for (let attempt = 1; attempt <= 3; attempt += 1)
      await expect(payments.pay('8')).rejects.toBe(refused);
    await expect(payments.pay('8')).rejects.toThrow('There is no receipt: exhausted.');
  });

  it('a value is loaded once for all callers', async () => {
    const kept = new Map<string, string>();
    const cache = {
      get: (key: string) => Promise.resolve(kept.get(key)),
      set: (key: string, value: string) => Promise.resolve(void kept.set(key, value)),
    };
    let loads = 0;
    const load = () => Promise.resolve(String((loads += 1)));
    const prices = [one, two, one, two].map((locks) => new Prices(locks, cache, load).price('x'));
    expect(await Promise.all(prices)).toEqual(['1', '1', '1', '1']);
    expect(loads).toBe(1);
  });

  it('a user gets one mail', async () => {
    const sent: string[] = [];
    const send = (user: string) => Promise.resolve(void sent.push(user));
    const results = [];
    for (const locks of [one, two, one]) results.push(await new Mails(locks, send).remind('ann'));
    expect(results).toEqual([true, false, false]);
    expect(sent).toEqual(['ann']);
  });

  it('a document is indexed once after a burst of changes', async () => {
    const indexed: string[] = [];
    const index = (id: string) => Promise.resolve(void indexed.push(id));
    const documents = [one, two].map((locks) => new Documents(locks, index));
    await Promise.all([0, 1, 0, 1, 0].map((which) => documents[which]!.changed('7')));
    expect(indexed).toEqual(['7']);
  });

  it('a change while the document is indexed waits, and indexes it again', async () => {
    const steps: string[] = [];
    const [began, mayEnd] = [deferred(), deferred()];
    const slowly = new Documents(
      one,
      async () => {
        steps.push('begin');
        began.resolve();
        await mayEnd.promise;
        steps.push('end');
      },
      0,
    );
    const first = slowly.changed('7');
    await began.promise;
    const replaced = deferred();
    one.on('lost', () => {
      replaced.resolve();
    });
    const again = new Documents(two, () => Promise.resolve(void steps.push('again')), 0);
    const second = again.changed('7');
    await replaced.promise;
    mayEnd.resolve();
    await Promise.all([first, second]);
    expect(steps).toEqual(['begin', 'end', 'again']);
  });
});

it('a cron job runs in one of five replicas, and not in one that comes later', async () => {
  const sent: string[] = [];
  const invoices: Invoices = {
    due: () => Promise.resolve(['1', '2']),
    send: (invoice) => Promise.resolve(void sent.push(invoice)),
  };
  let [ran, skipped] = [0, 0];
  const start = async (): Promise<CronJob> => {
    const { app } = await startApp({
      imports: [ScheduleModule.forRoot(), LockModule.forRoot({ redis: server.url })],
      providers: [InvoiceJob, { provide: Invoices, useValue: invoices }],
    });
    const locks = app.get(LockService);
    locks.on('released', () => (ran += 1));
    locks.on('refused', () => (skipped += 1));
    return app.get(SchedulerRegistry).getCronJob('invoices');
  };
  const replicas = await Promise.all(Array.from({ length: 5 }, start));
  for (const job of replicas) void job.fireOnTick();
  await eventually(() => ran + skipped === 5);
  void (await start()).fireOnTick();
  await eventually(() => ran + skipped === 6);
  await closeApps();
  expect({ ran, skipped, sent }).toEqual({ ran: 1, skipped: 5, sent: ['1', '2'] });
});

it('an import that failed in one replica is repeated by another one, and then not again', async () => {
  let attempts = 0;
  const imports: Imports = {
    run: () => {
      attempts += 1;
      return attempts === 1 ? Promise.reject(new Error('no network')) : Promise.resolve();
    },
  };
  const start = async (): Promise<CronJob> => {
    const { app } = await startApp({
      imports: [
        ScheduleModule.forRoot(),
        LockModule.forRoot({ redis: server.url, keyPrefix: 'import:' }),
      ],
      providers: [NightlyImport, { provide: Imports, useValue: imports }],
    });
    return app.get(SchedulerRegistry).getCronJob('import');
  };
  const replicas = await Promise.all([start(), start(), start()]);
  await Promise.all(replicas.map(async (job) => job.fireOnTick()));
  await eventually(() => attempts === 2);
  await (await start()).fireOnTick();
  await closeApps();
  expect(attempts).toBe(2);
});
