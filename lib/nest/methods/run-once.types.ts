import type { RunOnceMethodOptions } from './method-options.js';
import type { Check, KeyFunction, KeyProblem } from './with-lock.types.js';

/** The name of the work: a key template, or a function of the method's arguments that returns one key. */
export type RunOnceKey = string | KeyFunction;

/** The signature of `@RunOnce`. */
export type RunOnce = <const K extends RunOnceKey>(
  key: K,
  options?: RunOnceMethodOptions,
) => RunOnceDecorator<K>;

/**
 * The decorator that `@RunOnce` makes. It compiles only on methods that fit its key, and whose result may be
 * `undefined`.
 */
export type RunOnceDecorator<K> = <T extends object, M>(
  target: T,
  propertyKey: string | symbol,
  descriptor: TypedPropertyDescriptor<M> & Check<'runOnce', Problems<T, M, K>>,
) => void;

interface Say {
  static: '@RunOnce needs an instance, which has its LockService by injection: make the method non-static.';
  method: '@RunOnce can only be applied to methods.';
  promise: 'Work that is to be done once must return a Promise: make the method async.';
  nothing: 'The work may have been done elsewhere: add undefined to what the method resolves with.';
}

type Problems<T, M, K> = [M] extends [(...args: infer A) => infer R]
  ? [T extends NewableFunction ? Say['static'] : never, KeyProblem<K, A, T>, NothingProblem<R, Say>]
  : [Say['method']];

/**
 * What is wrong with the result of a method whose calls may return nothing. Functions are compared, not results: a bare `T` of a generic
 * class would leave the comparison open.
 */
export type NothingProblem<R, Say extends Readonly<Record<'promise' | 'nothing', string>>> = [
  R,
] extends [never]
  ? Say['promise']
  : [R] extends [PromiseLike<infer V>]
    ? (() => undefined) extends () => V
      ? never
      : Say['nothing']
    : Say['promise'];
