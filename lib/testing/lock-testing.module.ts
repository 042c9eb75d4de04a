import { Module, type DynamicModule } from '@nestjs/common';
import { LockService } from '../nest/lock.service.js';
import { storeOption } from '../options/location.js';
import {
  LOCK_MODULE,
  REGISTRATION,
  type LockModuleOptions,
  type RegistrationOptions,
} from '../options/lock-module-options.js';
import { without } from '../options/schema.js';
import { refuseUnknown, type Kind } from '../options/unknown-option.js';
import { RedisLockModule } from '../nest/redis-lock.module.js';
import { getLockServiceToken } from '../nest/tokens.js';
import { TestLockStore } from './test-lock-store.js';
import { TestLocks } from './test-locks.js';

/** The module's options, without those that decide where locks are kept. */
export type LockTestingOptions = Omit<LockModuleOptions, 'redis' | 'credentials' | 'store'> &
  RegistrationOptions;

const IN_MEMORY = 'The locks of a test are in memory: leave it out.';

const TESTING_MODULE: Kind = {
  called: 'LockTestingModule',
  options: { ...without(LOCK_MODULE.options, 'redis', 'credentials', 'store'), ...REGISTRATION },
  formerNames: LOCK_MODULE.formerNames ?? {},
  elsewhere: {
    ...LOCK_MODULE.elsewhere,
    redis: IN_MEMORY,
    credentials: IN_MEMORY,
    store: IN_MEMORY,
  },
};

const TEST_LOCKS: Kind = {
  called: 'createTestLocks()',
  options: without(TESTING_MODULE.options, 'isGlobal'),
  formerNames: LOCK_MODULE.formerNames ?? {},
  elsewhere: {
    ...TESTING_MODULE.elsewhere,
    isGlobal: 'It is an option of LockTestingModule.forRoot().',
  },
};

/**
 * Replaces `LockModule` in unit tests: locks in memory, no Redis, and `TestLocks` to make them look held, lost or
 * unavailable.
 *
 * To test an application with its own modules, replace its service, by a fresh one for every application:
 * `Test.createTestingModule({ imports: [AppModule] }).overrideProvider(LockService).useValue(createTestLocks().locks)`.
 */
@Module({})
export class LockTestingModule {
  static forRoot(given: LockTestingOptions = {}): DynamicModule {
    refuseUnknown(TESTING_MODULE, given);
    const { name, isGlobal = true, ...options } = given;
    // Every application that is created from this module has a store of its own.
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
      useFactory: (store: TestLockStore) => ({ ...options, store: storeOption(store) }),
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
 * Makes the locks of a test without Nest. Use it for objects that a test creates, whose `@WithLock` methods work after
 * `locks.bind(object)`, and to replace an application's service.
 *
 * @example
 * ```ts
 * import { createTestLocks } from 'nestjs-holdfast/testing';
 *
 * const { locks, testLocks } = createTestLocks();
 * await testLocks.hold('order:42');
 * expect(await locks.tryAcquire('order:42')).toEqual(null);
 * ```
 */
export function createTestLocks(options: Omit<LockTestingOptions, 'isGlobal'> = {}): {
  readonly locks: LockService;
  readonly testLocks: TestLocks;
} {
  refuseUnknown(TEST_LOCKS, options);
  const { name, ...rest } = options;
  const store = new TestLockStore();
  // A lock that a test takes and forgets stands for that of another owner.
  const locks = new LockService(
    { forgottenLocks: 'keep', ...rest, store: storeOption(store) },
    { name },
  );
  return { locks, testLocks: new TestLocks(store, locks) };
}
