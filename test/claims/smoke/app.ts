// What an application does with the published package. smoke.mjs compiles this file to an ES module and to CommonJS.
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { HttpException, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  LockInterceptor,
  LockModule,
  LockNotAcquiredError,
  LockService,
  RedisLockModule,
  WithLock,
} from 'nestjs-holdfast';
import { LockTestingModule } from 'nestjs-holdfast/testing';
import { LockBoardModule } from '@nestjs-holdfast/board';
import { Lock, Redlock } from '@nestjs-holdfast/redlock';

@Injectable()
class Orders {
  constructor(readonly locks: LockService) {}

  @WithLock('order:<orderId>')
  async pay(orderId: string): Promise<string> {
    await Promise.resolve();
    return `paid ${orderId}`;
  }
}

@Module({
  imports: [LockModule.forRoot({ store: 'memory' }), LockBoardModule.forRoot({ unguarded: true })],
  providers: [Orders],
})
class AppModule {}

function isRefusal(error: unknown): true {
  assert.ok(error instanceof LockNotAcquiredError);
  assert.ok(error instanceof HttpException, 'the package has a copy of Nest of its own');
  assert.equal(error.getStatus(), 409);
  return true;
}

async function main(): Promise<void> {
  assert.equal(LockModule, RedisLockModule);
  assert.equal(typeof LockInterceptor, 'function');
  assert.equal(typeof LockTestingModule, 'function');

  const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
  await app.listen(0, '127.0.0.1');
  const page = await fetch(`${await app.getUrl()}/locks`);
  assert.match(await page.text(), /assets\/page\.js/);
  const locks = app.get(LockService);
  const orders = app.get(Orders);
  assert.ok(locks instanceof LockService);
  assert.equal(orders.locks, locks);

  const fencingToken = await locks.run('order:42', async (lock) => {
    await Promise.resolve();
    return lock.fencingToken;
  });
  assert.ok(fencingToken > 0);

  const held = await locks.acquire('order:42');
  await assert.rejects(orders.pay('42'), isRefusal);
  assert.equal(await orders.pay('43'), 'paid 43');
  await held.release();
  assert.equal(await orders.pay('42'), 'paid 42');

  // One copy of the library: redlock's API finds the service of the application.
  const moved = await new Redlock(locks).acquire(['order:42'], 1_000);
  assert.ok(moved instanceof Lock);
  await assert.rejects(orders.pay('42'), isRefusal);
  await moved.release();

  await app.close();
  console.log('app: closed');
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
