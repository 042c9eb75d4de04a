import { Controller, Get, ServiceUnavailableException } from '@nestjs/common';
import { LockService, type StoreHealth } from 'nestjs-holdfast';

@Controller('health')
export class HealthController {
  constructor(private readonly locks: LockService) {}

  /** 200 while locks can be granted, even with a master down: alert on that one, but do not take the shop off the air. */
  @Get()
  async check(): Promise<StoreHealth> {
    const health = await this.locks.health();
    if (!health.hasQuorum) throw new ServiceUnavailableException(health);
    return health;
  }
}
