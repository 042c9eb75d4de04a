export { driverSuite, type DriverCheck, type DriverSuiteOptions } from './driver-suite.js';
export {
  createTestLocks,
  LockTestingModule,
  type LockTestingOptions,
} from './lock-testing.module.js';
export { TestLocks, type RecordedLockEvent } from './test-locks.js';
