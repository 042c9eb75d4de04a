import { Module, type DynamicModule } from '@nestjs/common';
import { LockService } from '../lock.service.js';
import type { LockModuleOptions } from '../options/lock-module-options.js';
import { RedisLockModule } from '../redis-lock.module.js';
import { getLockServiceToken } from '../tokens.js';
import { TestLockStore } from './test-lock-store.js';
import { TestLocks } from './test-locks.js';

/** The module's options, without what decides where locks are kept. */
export type LockTestingOptions = Omit<LockModuleOptions, 'redis' | 'store'> & {
  isGlobal?: boolean;
  name?: string | symbol;
};

/**
 * In place of `RedisLockModule` in unit tests: locks in memory, no Redis, and `TestLocks` to make them look held, lost or
 * unavailable.
 */
@Module({})
export class LockTestingModule {
  static forRoot(options: LockTestingOptions = {}): DynamicModule {
    const store = new TestLockStore();
    return {
      module: LockTestingModule,
      global: options.isGlobal ?? true,
      imports: [RedisLockModule.forRoot({ ...options, store })],
      providers: [
        {
          provide: TestLocks,
          useFactory: (service: LockService) => new TestLocks(store, service),
          inject: [getLockServiceToken(options.name)],
        },
      ],
      exports: [TestLocks, RedisLockModule],
    };
  }
}

/** The same without Nest: for objects that a test makes by hand; `locks.bind(object)` makes their `@WithLock` methods work. */
export function createTestLocks(options: Omit<LockTestingOptions, 'isGlobal'> = {}): {
  readonly locks: LockService;
  readonly testLocks: TestLocks;
} {
  const { name, ...rest } = options;
  const store = new TestLockStore();
  const locks = new LockService({ ...rest, store }, { name });
  return { locks, testLocks: new TestLocks(store, locks) };
}
