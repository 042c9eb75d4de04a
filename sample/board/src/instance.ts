/** One process of the shop. main.ts starts three of them; the one with a BOARD_PORT has the page. */
import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { NestFactory } from '@nestjs/core';
import { LockLostError } from 'nestjs-holdfast';
import { ShopModule, ShopWithBoardModule } from './shop.module.js';
import { StockService } from './stock.service.js';

const { BOARD_PORT } = process.env;
const logger = ['error', 'warn'] as const;
const ORDERS = 4;

async function start() {
  if (BOARD_PORT === undefined) {
    return NestFactory.createApplicationContext(ShopModule, { logger: [...logger] });
  }
  const app = await NestFactory.create(ShopWithBoardModule, { logger: [...logger] });
  await app.listen(BOARD_PORT, '127.0.0.1');
  console.log(`open ${(await app.getUrl()).replace('[::1]', '127.0.0.1')}/locks`);
  return app;
}

/** Again and again; a lock that was taken away is nothing to end for. */
async function repeat(work: () => Promise<void>, pauseMs: number): Promise<never> {
  for (;;) {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof LockLostError)) throw error;
      console.log(`lost ${error.detail}`);
    }
    await sleep(pauseMs);
  }
}

const stock = (await start()).get(StockService);
await Promise.all([
  repeat(() => stock.pay(randomInt(ORDERS)), 200),
  repeat(() => stock.pay(randomInt(ORDERS)), 400),
  repeat(() => stock.count(), 1_000),
]);
