import { Injectable, type INestApplicationContext } from '@nestjs/common';
import { EventEmitter2, EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { Test } from '@nestjs/testing';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { LockModule, LockService, WithLock } from 'nestjs-holdfast';
import { RedisServer } from '../../../support/redis-server.js';

@Injectable()
class Listeners {
  readonly heard: string[] = [];

  @OnEvent('paid')
  @WithLock('order:<id>')
  async hasty(id: string): Promise<void> {
    this.heard.push(`hasty ${id}`);
  }

  @OnEvent('paid')
  @WithLock('order:<id>', { wait: '5s' })
  async patient(id: string): Promise<void> {
    this.heard.push(`patient ${id}`);
  }
}

let redis: RedisServer;
let app: INestApplicationContext;

beforeAll(async () => {
  redis = await RedisServer.start();
});
afterAll(async () => {
  await app.close();
  await redis.stop();
});

it('a listener that is refused is in the log of Nest, and the others hear the event', async () => {
  const module = await Test.createTestingModule({
    imports: [EventEmitterModule.forRoot(), LockModule.forRoot({ redis: redis.url })],
    providers: [Listeners],
  }).compile();
  const errors: unknown[] = [];
  module.useLogger({
    log: () => undefined,
    warn: () => undefined,
    error: (message: unknown) => errors.push(message),
  });
  app = await module.init();
  const lock = await app.get(LockService).acquire('order:7');
  const refused = new Promise((resolve) => app.get(LockService).on('refused', resolve));
  const emitted = app.get(EventEmitter2).emitAsync('paid', '7');
  await refused;
  await lock.release();
  await emitted;
  expect(app.get(Listeners).heard).toEqual(['patient 7']);
  expect(errors).toEqual(['The lock order:<id> is held by another caller.']);
});
