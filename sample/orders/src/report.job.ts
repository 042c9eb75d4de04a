import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { Cron, CronExpression } from '@nestjs/schedule';
import { WithLock } from 'nestjs-holdfast';

@Injectable()
export class ReportJob {
  readonly #logger = new Logger(ReportJob.name);

  /** Every process of the shop fires; one gets the lock and writes the report, the others skip. */
  @Cron(CronExpression.EVERY_30_SECONDS)
  @WithLock('report', { onLocked: 'skip' })
  async write(): Promise<void> {
    await sleep(2_000);
    this.#logger.log('The report is written');
  }
}
