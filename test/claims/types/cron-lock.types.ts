/* What `@CronLock` accepts and refuses at compile time. Nothing here runs; types.spec.ts holds the compiler to it. */
import type { CronLock as CronLockType } from '../../../lib/nest/methods/cron-lock.types.js';

declare const CronLock: CronLockType;

export class Accepted {
  @CronLock('report')
  async nothing(): Promise<void> {}

  @CronLock('report', { atLeast: '1m', atMost: '10m', instance: 'jobs' })
  async value(): Promise<string | undefined> {
    return undefined;
  }
}

export class Refused {
  // @ts-expect-error add undefined to what the method resolves with
  @CronLock('report')
  async value(): Promise<string> {
    return '';
  }

  // @ts-expect-error make the method async
  @CronLock('report')
  now(): void {}

  // @ts-expect-error make the method non-static
  @CronLock('report')
  static async ofTheClass(): Promise<void> {}

  // @ts-expect-error not assignable to parameter of type 'string'
  @CronLock(['a', 'b'])
  async several(): Promise<void> {}

  // @ts-expect-error 'wait' does not exist in type 'CronLockOptions'
  @CronLock('report', { wait: '1s' })
  async waits(): Promise<void> {}

  // @ts-expect-error not assignable to type
  @CronLock('report', { atLeast: true })
  async flag(): Promise<void> {}
}
