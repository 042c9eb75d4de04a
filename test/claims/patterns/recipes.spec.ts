import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import type { LockService } from 'nestjs-holdfast';
import { RedisServer } from '../../support/redis-server.js';
import { Mails, Payments, Prices, Transfers } from './recipes.js';
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

it('the recipes are the code of docs/recipes.md', () => {
  const [, ...recipes] = textOf('recipes.ts').split('// recipe\n');
  const page = textOf('../../../docs/recipes.md');
  expect(recipes).toHaveLength(4);
  expect(recipes.filter((code) => !page.includes('```ts\n' + code.trim() + '\n```'))).toEqual([]);
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

  it('a transaction is committed before another one begins', async () => {
    const steps: string[] = [];
    const database = {
      transaction: async (work: () => Promise<void>) => {
        steps.push('begin');
        await work();
        await server.command('PING'); // the commit takes a round trip
        steps.push('commit');
      },
      move: () => Promise.resolve(),
    };
    await Promise.all([
      new Transfers(one, database).transfer('a', 'b', 1),
      new Transfers(two, database).transfer('b', 'a', 1),
    ]);
    expect(steps).toEqual(['begin', 'commit', 'begin', 'commit']);
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
});
