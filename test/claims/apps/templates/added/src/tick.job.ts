import { Injectable } from '@nestjs/common';
import { Cron, CronExpression } from '@nestjs/schedule';
import { WithLock } from 'nestjs-holdfast';

@Injectable()
export class TickJob {
  readonly hasRun: Promise<void>;
  private run = (): void => undefined;

  constructor() {
    this.hasRun = new Promise((resolve) => {
      this.run = resolve;
    });
  }

  @Cron(CronExpression.EVERY_SECOND)
  @WithLock('tick:<fireTime>', {
    ttl: '10s',
    release: 'on-expiry',
    onLocked: 'skip',
  })
  async tick(): Promise<void> {
    await Promise.resolve(this.run());
  }
}
