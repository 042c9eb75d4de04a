import type { Observable } from 'rxjs';
import type { WithLockOptions } from './method-options.js';

/** One key, or several that are locked together: all or none. */
export type LockKeys = string | readonly string[];

/**
 * Computes the keys of a call from the method's arguments. It may take fewer arguments than the method. Declare its
 * parameter types: the compiler compares them with the method's. A `function` has the object of the call as `this`,
 * whose type it has to declare too; an arrow function has no `this`.
 *
 * Without `Args` it is any key function: `never` accepts every parameter list.
 */
export type KeyFunction<Args extends readonly unknown[] = never> = (...args: Args) => LockKeys;

/** What `@WithLock` locks: a key template, several of them, or a function of the method's arguments. */
export type WithLockKey = string | readonly [string, ...string[]] | KeyFunction;

/**
 * The type of `O` without options. Nothing is known of the options, and an `onLocked` function still gets its context's
 * type.
 */
export type NoOptions = WithLockOptions | Record<never, never>;

declare const notInferred: unique symbol;

/**
 * The type of `O` when the options do not fit at all. The compiler has already reported the options where they stand.
 */
export interface KnownOptions extends WithLockOptions {
  readonly [notInferred]?: never;
}

/** The signature of `@WithLock`. */
export type WithLock = <const K extends WithLockKey, const O extends KnownOptions = NoOptions>(
  key: K,
  options?: O,
) => WithLockDecorator<K, O>;

/** The decorator that `@WithLock` makes; it compiles only on methods that fit its key and its options. */
export type WithLockDecorator<K, O> = <T extends object, M>(
  target: T,
  propertyKey: string | symbol,
  descriptor: TypedPropertyDescriptor<M> & Check<'withLock', Problems<T, M, K, O>>,
) => void;

/**
 * The first problem, as a property that no descriptor has: the compiler reports it as missing and prints the sentence.
 * `unknown`, which asks for nothing, when all of them are `never`.
 */
export type Check<Name extends string, Problems> = Problems extends [infer First, ...infer Others]
  ? [First] extends [never]
    ? Check<Name, Others>
    : Readonly<Record<Name, First>>
  : unknown;

/** Every sentence that this decorator makes the compiler print. */
interface Say {
  static: '@WithLock needs an instance, which has its LockService by injection: make the method non-static.';
  method: '@WithLock can only be applied to methods: move the work of this accessor into an async method.';
  promise: 'A locked method must always return a Promise: make it async.';
  sayObservable: "This method returns an Observable: add the option returns: 'observable'.";
  sayIterable: "This method returns an async iterable: add the option returns: 'iterable'.";
  observable: "returns: 'observable' is for methods that return an rxjs Observable: remove it, or return one.";
  iterable: "returns: 'iterable' is for methods that return an async iterable: remove it, or return one.";
  key: "The key function does not fit the method: annotate its parameters, and `this` if it has one, with the types of the method's own.";
  places: "The places function does not fit the method: annotate its parameters, and `this` if it has one, with the types of the method's own.";
  skip: "onLocked: 'skip' answers undefined: add undefined to the method's result, or give onLocked a function.";
  fallback: "The result of onLocked does not fit the method's result: return such a value (literals: as const).";
  vague: "The compiler must see returns and onLocked: declare the options with 'satisfies WithLockOptions'.";
}

/** A list, in the order in which the compiler reports them. Each is a sentence of `Say`, or `never`. */
type Problems<T, M, K, O> = typeof notInferred extends keyof O
  ? []
  : [M] extends [(...args: infer A) => infer R]
    ? [
        StaticProblem<T>,
        UnknownOption<keyof O>,
        VagueOption<O>,
        KeyProblem<K, A, T>,
        PlacesProblem<Option<O, 'places', undefined>, A, T>,
        ReturnProblem<R, Option<O, 'returns', 'promise'>>,
        OnLockedProblem<R, Option<O, 'onLocked', 'throw'>>,
      ]
    : [Say['method']];

type StaticProblem<T> = T extends NewableFunction ? Say['static'] : never;

type Option<O, Name, Default> = Name extends keyof O ? O[Name] : Default;

/** A type parameter gets no excess property check, so a misspelt option is refused here. */
type UnknownOption<Name> = Name extends keyof WithLockOptions
  ? never
  : `@WithLock has no option '${Name & string}'.`;

/**
 * Behind `: WithLockOptions`, the two options that decide about types are optional, so the compiler does not see their
 * values.
 */
type VagueOption<O, Name = 'returns' | 'onLocked'> = Name extends keyof O
  ? Record<never, never> extends Pick<O, Name>
    ? Say['vague']
    : never
  : never;

export type KeyProblem<K, A extends readonly unknown[], T> = K extends
  LockKeys | ((this: T, ...args: A) => LockKeys)
  ? never
  : Say['key'];

type PlacesProblem<P, A extends readonly unknown[], T> = P extends
  number | undefined | ((this: T, ...args: A) => number)
  ? never
  : Say['places'];

/** Tuples keep a union whole: `T | Promise<T>` must not pass by its second half. */
type ReturnProblem<R, Returns> = [R] extends [never]
  ? Say['promise']
  : Returns extends 'observable'
    ? [R] extends [Observable<unknown>]
      ? never
      : Say['observable']
    : Returns extends 'iterable'
      ? [R] extends [AsyncIterable<unknown>]
        ? never
        : Say['iterable']
      : [R] extends [PromiseLike<unknown>] | [AsyncGenerator<unknown, unknown, never>]
        ? never
        : [R] extends [Observable<unknown>]
          ? Say['sayObservable']
          : [R] extends [AsyncIterable<unknown>]
            ? Say['sayIterable']
            : Say['promise'];

type OnLockedProblem<R, OnLocked> = [R] extends [PromiseLike<infer V>]
  ? Misfit<OnLocked, undefined, V | PromiseLike<V>>
  : [R] extends [Observable<infer V>]
    ? Misfit<OnLocked, never, V | Observable<V>>
    : [R] extends [AsyncIterable<infer V>]
      ? Misfit<OnLocked, never, AsyncIterable<V>>
      : never;

/** Functions are compared, not results: a bare `T` of a generic class would leave the comparison open. */
type Misfit<OnLocked, Skipped, Answer> = OnLocked extends 'skip'
  ? (() => Skipped) extends () => Answer
    ? never
    : Say['skip']
  : OnLocked extends 'throw' | 'replace' | undefined | ((context: never) => Answer)
    ? never
    : Say['fallback'];
