/** Holds a key until it is lost, and prints what it was told then. */
import { Logger } from '@nestjs/common';
import { LockService } from 'nestjs-holdfast';

Logger.overrideLogger(false);

const [key = '', ...urls] = process.argv.slice(2);

class Reports {
  constructor(private readonly locks: LockService) {}

  /** Renewed often, and long enough for a busy machine. */
  async make(): Promise<void> {
    await this.locks.run(key, { ttl: '10s' }, async ({ signal }) => {
      await new Promise((resolve) => {
        signal.addEventListener('abort', resolve);
      });
    });
  }
}

const locks = new LockService({ redis: urls, instance: { application: 'reports' } });
await locks.open();
await new Reports(locks).make().catch((error: unknown) => {
  const { name, reason, intervention } = error as Record<string, unknown>;
  console.log(JSON.stringify({ name, reason, intervention }));
});
await locks.shutdown();
