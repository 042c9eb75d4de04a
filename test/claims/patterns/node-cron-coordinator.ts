import type { LockService } from 'nestjs-holdfast';

export class HoldfastCoordinator {
  constructor(private readonly locks: LockService) {}

  /** The first process that asks runs the task. The key stays taken for at least `ttlMs`, so that a late process does not. */
  async shouldRun(key: string, ttlMs: number): Promise<boolean> {
    const options = { ttl: ttlMs, release: 'on-expiry' } as const;
    const { acquired } = await this.locks.tryRun(`cron:${key}`, options, () => undefined);
    return acquired;
  }
}
