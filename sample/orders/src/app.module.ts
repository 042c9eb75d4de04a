import { Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { LockModule } from 'nestjs-holdfast';
import { AccountsController } from './accounts.controller.js';
import { AccountsService } from './accounts.service.js';
import { OrdersController } from './orders.controller.js';
import { OrdersService } from './orders.service.js';
import { ReportJob } from './report.job.js';

const redis = process.env.REDIS_URL;

@Module({
  imports: [
    ScheduleModule.forRoot(),
    // Where there is a Redis, several processes of this shop exclude each other; without one, it is this process only.
    LockModule.forRoot(redis === undefined ? { store: 'memory' } : { redis }),
  ],
  controllers: [OrdersController, AccountsController],
  providers: [OrdersService, AccountsService, ReportJob],
})
export class AppModule {}
