import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Cron } from '@nestjs/schedule';
import { CronLock, LockService } from 'nestjs-holdfast';

@Injectable()
export class ReportJob {
  constructor(private readonly locks: LockService) {
    // "skip" is silent; this is how to hear of it.
    locks.on('refused', ({ keys: [key] }) => console.log(`skipped ${key ?? ''}`));
  }

  /** Every instance fires. The key has the time that the run was scheduled for, the same in all of them: one has the lock, and the others skip. */
  @Cron('*/2 * * * * *')
  @CronLock('report')
  async write(): Promise<void> {
    const [key = ''] = this.locks.current()?.keys ?? [];
    await sleep(20); // a quick report: the key stays taken, for an instance that is later than this
    console.log(`wrote ${key}`);
  }
}
