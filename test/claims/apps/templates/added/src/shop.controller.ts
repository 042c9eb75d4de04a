import { Controller, Get } from '@nestjs/common';
import { TickJob } from './tick.job';

@Controller()
export class ShopController {
  constructor(private readonly job: TickJob) {}

  /** Answers when the cron job has run. */
  @Get('tick')
  async tick(): Promise<string> {
    await this.job.hasRun;
    return 'tick';
  }
}
