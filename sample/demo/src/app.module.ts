import { Module, type Type } from '@nestjs/common';
import { RedisLockModule } from 'nestjs-holdfast';
import { Ledger } from './ledger.js';
import { OrdersController } from './orders.controller.js';
import { LockedOrdersService, OrdersService, QueuedOrdersService } from './orders.service.js';

const redis = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379';

/** What the demo compares, by the environment variable LOCKS. */
const services: Record<string, Type<OrdersService>> = {
  off: OrdersService,
  on: LockedOrdersService,
  wait: QueuedOrdersService,
};

@Module({
  imports: [RedisLockModule.forRoot({ redis })],
  controllers: [OrdersController],
  providers: [
    Ledger,
    {
      provide: OrdersService,
      useClass: services[process.env.LOCKS ?? 'on'] ?? LockedOrdersService,
    },
  ],
})
export class AppModule {}
