import { Controller, Get, Post } from '@nestjs/common';
import { openTill } from './shop';
import { TickJob } from './tick.job';

@Controller()
export class ShopController {
  constructor(private readonly job: TickJob) {}

  @Post('till')
  openTill(): void {
    openTill();
  }

  /** Answers when the cron job has run. */
  @Get('tick')
  async tick(): Promise<string> {
    await this.job.hasRun;
    return 'tick';
  }
}
