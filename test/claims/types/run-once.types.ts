/* What `@RunOnce` accepts and refuses at compile time. Nothing here runs; run-once.spec.ts holds the compiler to it. */
import type { RunOnce as RunOnceType } from '../../../lib/nest/methods/run-once.types.js';

declare const RunOnce: RunOnceType;

interface Email {
  readonly id: number;
}

export class Accepted<T> {
  @RunOnce('report')
  async nothing(): Promise<void> {}

  @RunOnce('email:<id>', { attempts: 5, keepDone: '1h', keepValue: true, ttl: '30s', wait: '1m' })
  async value(_id: number): Promise<string | undefined> {
    return undefined;
  }

  @RunOnce((email: Email) => `email:${String(email.id)}`)
  async byFunction(_email: Email, _more: string): Promise<void> {}

  @RunOnce('generic')
  async generic(): Promise<T | undefined> {
    return undefined;
  }
}

export class Refused<T> {
  // @ts-expect-error add undefined to what the method resolves with
  @RunOnce('value')
  async value(): Promise<string> {
    return '';
  }

  // @ts-expect-error add undefined to what the method resolves with
  @RunOnce('generic')
  async generic(): Promise<T> {
    return this.generic();
  }

  // @ts-expect-error must return a Promise
  @RunOnce('sync')
  sync(): void {}

  // @ts-expect-error must return a Promise
  @RunOnce('generator')
  async *generator(): AsyncGenerator<number> {}

  // @ts-expect-error The key function does not fit the method
  @RunOnce((email: Email) => String(email.id))
  async otherParameters(_id: number): Promise<void> {}

  // @ts-expect-error make the method non-static
  @RunOnce('static')
  static async ofTheClass(): Promise<void> {}

  // @ts-expect-error 'attempt' does not exist
  @RunOnce('misspelt', { attempt: 3 })
  async misspelt(): Promise<void> {}

  // @ts-expect-error not assignable to parameter of type 'RunOnceKey'
  @RunOnce(['a', 'b'])
  async severalKeys(): Promise<void> {}
}
