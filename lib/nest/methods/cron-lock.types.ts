import type { CronLockOptions } from './method-options.js';
import type { NothingProblem } from './run-once.types.js';
import type { Check } from './with-lock.types.js';

/** The signature of `@CronLock`. */
export type CronLock = (name: string, options?: CronLockOptions) => CronLockDecorator;

/** The decorator that `@CronLock` makes. It compiles only on methods whose result may be `undefined`. */
export type CronLockDecorator = <T extends object, M>(
  target: T,
  propertyKey: string | symbol,
  descriptor: TypedPropertyDescriptor<M> & Check<'cronLock', Problems<T, M>>,
) => void;

interface Say {
  static: '@CronLock needs an instance, which has its LockService by injection: make the method non-static.';
  method: '@CronLock can only be applied to methods.';
  promise: 'A locked job must return a Promise: make the method async.';
  nothing: 'A run may be skipped: add undefined to what the method resolves with.';
}

type Problems<T, M> = [M] extends [(...args: never[]) => infer R]
  ? [T extends NewableFunction ? Say['static'] : never, NothingProblem<R, Say>]
  : [Say['method']];
