import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import request, { type Response } from 'supertest';
import { eventually } from '../../support/eventually.js';
import { freePort } from '../../support/free-port.js';
import { RedisServer } from '../../support/redis-server.js';
import { Program } from './program.js';

class Shop {
  static readonly #all: Shop[] = [];

  private constructor(
    readonly program: Program,
    readonly url: string,
  ) {
    Shop.#all.push(this);
  }

  static async open(redis?: RedisServer): Promise<Shop> {
    const port = String(await freePort());
    const program = new Program('sample/orders/src/main.ts', {
      PORT: port,
      REDIS_URL: redis?.url,
    });
    const shop = new Shop(program, `http://127.0.0.1:${port}`);
    await program.says(/The shop is open/);
    return shop;
  }

  static async closeAll(): Promise<void> {
    await Promise.all(Shop.#all.splice(0).map(({ program }) => program.kill()));
  }

  /** On a connection of its own: one that is kept alive keeps the process from exiting for some seconds. */
  async post(path: string): Promise<Response> {
    return request(this.url).post(path).set('Connection', 'close');
  }

  async get(path: string): Promise<unknown> {
    const { body } = await request(this.url).get(path).set('Connection', 'close');
    return body;
  }
}

afterAll(() => Shop.closeAll());

function expectOnePaid(answers: readonly Response[]): void {
  const [paid, refused] = [...answers].sort((a, b) => a.status - b.status);
  expect(paid).toMatchObject({ status: 201, body: { order: '42', payment: 1 } });
  expect(paid?.body.fencingToken).toBeGreaterThan(0);
  expect(refused).toMatchObject({
    status: 409,
    headers: { 'retry-after': expect.stringMatching(/^[1-9]\d*$/) },
    body: { statusCode: 409, code: 'LOCK_NOT_ACQUIRED' },
  });
}

describe('the orders sample on the memory store', () => {
  let shop: Shop;

  beforeAll(async () => {
    shop = await Shop.open();
  });

  it('pays an order once of two payments at once, and tells the other when to come again', async () => {
    const pay = () => shop.post('/orders/42/pay');
    expectOnePaid(await Promise.all([pay(), pay()]));
    expect(await shop.get('/orders/42')).toEqual({ payments: 1, lock: { held: false } });
    expect(shop.program.output).toContain('Its locks are in the memory of this process');
  });

  it('ships two parcels of an order one after the other', async () => {
    const ship = () => shop.post('/orders/42/ship');
    const shipped = { status: 201, body: { shipped: '42' } };
    const startedAt = performance.now();
    expect(await Promise.all([ship(), ship()])).toMatchObject([shipped, shipped]);
    expect(performance.now() - startedAt).toBeGreaterThan(900); // one takes half a second
  });

  it('loses no money in transfers in both directions at once', async () => {
    const transfers = await Promise.all([
      shop.post('/accounts/alice/transfer/bob/10'),
      shop.post('/accounts/bob/transfer/alice/5'),
    ]);
    expect(transfers.map(({ status }) => status)).toEqual([201, 201]);
    expect(await shop.get('/accounts')).toEqual({ alice: 95, bob: 105 });
  });
});

describe('the orders sample on Redis', () => {
  let redis: RedisServer;

  beforeAll(async () => {
    redis = await RedisServer.start();
  });

  afterAll(() => redis.stop());

  const isLocked = async (order: string) => (await redis.command('EXISTS', `lock:${order}`)) === 1;

  it('pays an order once of two payments at once in two processes', async () => {
    const shops = await Promise.all([Shop.open(redis), Shop.open(redis)]);
    expectOnePaid(await Promise.all(shops.map((shop) => shop.post('/orders/42/pay'))));
    expect(await isLocked('order:42')).toBe(false);
  });

  it('finishes a payment that SIGTERM comes in the middle of, gives its lock back and exits', async () => {
    const shop = await Shop.open(redis);
    const payment = shop.post('/orders/7/pay');
    await eventually(() => isLocked('order:7'));

    shop.program.signal('SIGTERM');

    expect(await payment).toMatchObject({ status: 201, body: { order: '7', payment: 1 } });
    // After its hooks, Nest ends the process with the signal that came.
    expect(await shop.program.ended).toEqual({ code: null, signal: 'SIGTERM' });
    expect(await isLocked('order:7')).toBe(false);
  });
});
