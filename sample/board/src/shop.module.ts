import { Module } from '@nestjs/common';
import { LockModule } from 'nestjs-holdfast';
import { LockBoardModule } from '@nestjs-holdfast/board';
import { StockService } from './stock.service.js';

const redis = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379';

/** What every process of the shop does. */
@Module({
  imports: [LockModule.forRoot({ redis, instance: { application: 'shop' } })],
  providers: [StockService],
})
export class ShopModule {}

/** One process has the page, too. Only this machine reaches it; everywhere else, name `guards`. */
@Module({
  imports: [ShopModule, LockBoardModule.forRoot({ path: 'locks', unguarded: true })],
})
export class ShopWithBoardModule {}
