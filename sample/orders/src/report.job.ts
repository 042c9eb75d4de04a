import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { Cron, CronExpression } from '@nestjs/schedule';
import { WithLock } from 'nestjs-holdfast';

@Injectable()
export class ReportJob {
  readonly #logger = new Logger(ReportJob.name);

  /** Every process of the shop fires. One of them writes the report of that time, the others skip. */
  @Cron(CronExpression.EVERY_30_SECONDS)
  @WithLock('report:<fireTime>', { release: 'on-expiry', onLocked: 'skip' })
  async write(): Promise<void> {
    await sleep(2_000);
    this.#logger.log('The report is written');
  }
}
