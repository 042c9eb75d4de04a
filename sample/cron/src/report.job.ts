import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Cron } from '@nestjs/schedule';
import { LockService, WithLock } from 'nestjs-holdfast';

@Injectable()
export class ReportJob {
  constructor(private readonly locks: LockService) {
    // "skip" is silent; this is how to hear of it.
    locks.on('refused', ({ keys: [key] }) => console.log(`skipped ${key ?? ''}`));
  }

  /**
   * Every instance fires. `<fireTime>` is when the run was scheduled for, the same in all of them, so one of them has the lock, and the
   * others skip. `on-expiry` keeps it taken for a `ttl` after the job, which may be quicker than an instance is late.
   */
  @Cron('*/2 * * * * *')
  @WithLock('report:<fireTime>', { ttl: '10s', release: 'on-expiry', onLocked: 'skip' })
  async write(): Promise<void> {
    const [key = ''] = this.locks.current()?.keys ?? [];
    await sleep(20); // a quick report: without `on-expiry` an instance that is later than this writes it again
    console.log(`wrote ${key}`);
  }
}
