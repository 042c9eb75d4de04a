import type { DynamicModule, INestApplicationContext } from '@nestjs/common';
import { LockModule, LockService, type Lock, type LockModuleOptions } from 'nestjs-holdfast';
import type { Order } from './child-application.js';

interface Asked {
  readonly id: number;
  readonly order: Order;
  readonly key: string;
}

/** What the application's own code has noted, for the test. */
export const notes: string[] = [];

/** Locks in the Redis of the test. A renewal, which is when a loss is found, comes every second. */
export function lockModule(options: LockModuleOptions = {}): DynamicModule {
  const { REDIS_URL: redis = '' } = process.env;
  return LockModule.forRoot({ redis, ttl: '3s', shutdownTimeout: '100ms', ...options });
}

/** Work that goes on until its lock is lost. */
export async function untilLost(locks: LockService): Promise<void> {
  const signal = locks.current()?.signal;
  if (signal === undefined) throw new Error('The work has no lock.');
  await new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => {
      resolve();
    });
  });
}

/** Tells the test that started this process where the application listens, and does what it asks. */
export function serve(app: INestApplicationContext, url: string): void {
  const locks = app.get(LockService);
  const held = new Map<string, Lock>();
  const orders: Record<Order, (key: string) => unknown> = {
    hold: async (key) => void held.set(key, await locks.acquire(key, { ttl: '20s' })),
    release: (key) => held.get(key)?.release(),
    replace: (key) => locks.run(key, { onLocked: 'replace' }, () => undefined),
    'is-held': async (key) => (await locks.inspect(key)).held,
    notes: () => notes,
    close: () => app.close(),
  };
  process.on('message', ({ id, order, key }: Asked) => {
    void Promise.resolve()
      .then(() => orders[order](key))
      .then((value) => ({ id, value }))
      .catch((error: unknown) => ({ id, error: String(error) }))
      .then((reply) => {
        process.send?.(reply);
        if (order === 'close') process.disconnect();
      });
  });
  process.send?.({ url });
}
