import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { INestMicroservice, Type } from '@nestjs/common';
import type { CustomTransportStrategy } from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { LockModule, type LockService } from 'nestjs-holdfast';
import { RedisServer } from '../../support/redis-server.js';
import { KafkaWithoutBroker, RabbitWithoutBroker } from '../../support/without-broker.js';
import { ShipmentsConsumer, ShipmentsController, work } from './consumers.js';
import { recipesOf } from './recipe-pages.js';
import { Services } from './services.js';

let server: RedisServer;
let other: LockService;
let app: INestMicroservice;
let shipped: string[];
const services = new Services();

beforeAll(async () => {
  server = await RedisServer.start();
});

beforeEach(async () => {
  await server.command('FLUSHALL');
  other = await services.open(server.url);
  shipped = [];
  work.ship = (orderId) => Promise.resolve(void shipped.push(orderId));
});

afterEach(async () => {
  await app.close();
  await services.closeAll();
});

afterAll(() => server.stop());

/** An application with this consumer, without a broker. */
async function start(consumer: Type, strategy: CustomTransportStrategy): Promise<void> {
  const module = await Test.createTestingModule({
    imports: [LockModule.forRoot({ redis: server.url })],
    controllers: [consumer],
  }).compile();
  app = module.createNestMicroservice({ strategy });
  app.useLogger(false);
  await app.listen();
}

it('the consumers are the code of docs/recipes.md', async () => {
  await start(ShipmentsConsumer, new KafkaWithoutBroker({}));
  expect(recipesOf('consumers.ts')).toEqual({ shown: 3, missing: [] });
});

describe('a consumer of RabbitMQ', () => {
  it('acknowledges a message that was handled, and sends one whose lock is held to the dead letters', async () => {
    const strategy = new RabbitWithoutBroker({ noAck: false });
    await start(ShipmentsController, strategy);
    /** Resolves with the answer of the handler that the broker gets for the message. */
    const deliver = (id: string): Promise<unknown> =>
      new Promise((resolve, reject) => {
        const channel = {
          ack: (message: unknown) => resolve({ acknowledged: message }),
          nack: (refused: unknown, allUpTo: boolean, requeue: boolean) =>
            resolve({ refused, allUpTo, requeue }),
        };
        const content = Buffer.from(JSON.stringify({ pattern: 'order.paid', data: { id } }));
        strategy.handleMessage({ id, content, properties: {} }, channel).catch(reject);
      });
    const lock = await other.acquire('order:7');
    const message = expect.objectContaining({ id: '7' });
    expect(await deliver('7')).toEqual({ refused: message, allUpTo: false, requeue: false });
    expect(shipped).toEqual([]);
    await lock.release();
    expect(await deliver('7')).toEqual({ acknowledged: message }); // later, from the dead letters
    expect(shipped).toEqual(['7']);
  });
});

describe('a consumer of Kafka', () => {
  it('commits the offset of an event that was handled, and of none whose lock is held', async () => {
    const strategy = new KafkaWithoutBroker({});
    await start(ShipmentsConsumer, strategy);
    /** What the client calls for each message: it commits the offset if this resolves. */
    const each = (): Promise<unknown> =>
      strategy.handleMessage({
        topic: 'order.paid',
        partition: 0,
        message: { key: null, value: Buffer.from('{"id":"7"}'), headers: {} },
      } as never);
    const lock = await other.acquire('order:7');
    await expect(each()).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
    expect(shipped).toEqual([]);
    await lock.release();
    await each();
    expect(shipped).toEqual(['7']);
  });
});
