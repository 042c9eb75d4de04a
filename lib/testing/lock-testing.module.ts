import { Module, type DynamicModule } from '@nestjs/common';
import { LockService } from '../nest/lock.service.js';
import type { LockModuleOptions } from '../options/lock-module-options.js';
import { RedisLockModule } from '../nest/redis-lock.module.js';
import { getLockServiceToken } from '../nest/tokens.js';
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
 *
 * To test an application with its own modules, replace its service, by a fresh one for every application:
 * `Test.createTestingModule({ imports: [AppModule] }).overrideProvider(LockService).useValue(createTestLocks().locks)`.
 */
@Module({})
export class LockTestingModule {
  static forRoot({ name, isGlobal = true, ...options }: LockTestingOptions = {}): DynamicModule {
    // Every application that is made of this module has a store of its own.
    const storeModule: DynamicModule = {
      module: TestLockStoreModule,
      providers: [{ provide: TestLockStore, useFactory: () => new TestLockStore() }],
      exports: [TestLockStore],
    };
    const lockModule = RedisLockModule.forRootAsync({
      name,
      isGlobal,
      imports: [storeModule],
      inject: [TestLockStore],
      useFactory: (store: TestLockStore) => ({ ...options, store }),
    });
    return {
      module: LockTestingModule,
      global: isGlobal,
      imports: [storeModule, lockModule],
      providers: [
        {
          provide: TestLocks,
          useFactory: (store: TestLockStore, service: LockService) => new TestLocks(store, service),
          inject: [TestLockStore, getLockServiceToken(name)],
        },
      ],
      exports: [TestLocks, lockModule],
    };
  }
}

@Module({})
class TestLockStoreModule {}

/**
 * The same without Nest: for objects that a test makes by hand, whose `@WithLock` methods work after `locks.bind(object)`, and to
 * take the place of an application's service.
 */
export function createTestLocks(options: Omit<LockTestingOptions, 'isGlobal'> = {}): {
  readonly locks: LockService;
  readonly testLocks: TestLocks;
} {
  const { name, ...rest } = options;
  const store = new TestLockStore();
  const locks = new LockService({ ...rest, store }, { name });
  return { locks, testLocks: new TestLocks(store, locks) };
}
