import { Module, type DynamicModule } from '@nestjs/common';
import { LockModule } from 'nestjs-holdfast';
import { HealthController } from './health.controller.js';
import { Ledger } from './ledger.js';
import { OrdersController } from './orders.controller.js';
import { OrdersService } from './orders.service.js';

@Module({})
export class ShopModule {
  /**
   * @param masters URLs of Redis servers that fail independently of each other: an odd number of them, three or more
   * @param ledger the database that all instances of the shop share
   */
  static on(masters: readonly string[], ledger: Ledger): DynamicModule {
    return {
      module: ShopModule,
      imports: [
        // All that it takes. A lock is held by whoever has a majority of them, so one of three may be gone.
        // Masters that may lose their data when they restart need "restartGuard" too: see docs/redis.md.
        LockModule.forRoot({ redis: masters }),
      ],
      controllers: [OrdersController, HealthController],
      providers: [OrdersService, { provide: Ledger, useValue: ledger }],
    };
  }
}
