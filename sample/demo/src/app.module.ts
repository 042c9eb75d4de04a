import { Module } from '@nestjs/common';
import { RedisLockModule } from 'nestjs-holdfast';
import { Ledger } from './ledger.js';
import { OrdersController } from './orders.controller.js';
import { LockedOrdersService, OrdersService, QueuedOrdersService } from './orders.service.js';

/** What the demo compares, by the environment variable LOCKS. */
const services = { off: OrdersService, on: LockedOrdersService, wait: QueuedOrdersService };

@Module({
  imports: [
    RedisLockModule.forRoot({ redis: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379' }),
  ],
  controllers: [OrdersController],
  providers: [
    Ledger,
    {
      provide: OrdersService,
      useClass: services[(process.env['LOCKS'] ?? 'on') as keyof typeof services],
    },
  ],
})
export class AppModule {}
