import type { Observable } from 'rxjs';
import type { LockNotAcquiredError } from '../../errors.js';
import type { Duration } from '../../options/duration.js';

/** One key, or several that are locked all or none. */
export type LockKeys = string | readonly string[];

/**
 * Computes the keys of a call from the method's arguments; it may take fewer of them. Write down its parameter types: the
 * compiler then compares them with the method's. Without `Args`: any key function (`never` accepts every parameter list). A
 * `function` has the object of the call as `this`, whose type it has to write down as well; an arrow has not.
 */
export type KeyFunction<Args extends readonly unknown[] = never> = (...args: Args) => LockKeys;

/** What `@WithLock` locks: a key template, several of them, or a function of the method's arguments. */
export type WithLockKey = string | readonly [string, ...string[]] | KeyFunction;

/** What an `onLocked` function is told about the call that did not get its lock. */
export interface LockedContext {
  readonly keys: readonly string[];
  /** The arguments of the call; empty for a handler whose keys need only the request, which is refused before it has arguments. */
  readonly args: readonly unknown[];
  /** Milliseconds until the holder's lease ends if it is not renewed. */
  readonly retryAfterMs: number;
  /** What would be thrown without `onLocked`. */
  readonly error: LockNotAcquiredError;
}

/** Options of `@WithLock`. What is left out comes from the module's defaults. */
export interface WithLockOptions {
  /** How long the lease lasts unless it is renewed. */
  ttl?: Duration;
  /** How long a call stands in line for the lock. Default: not at all. */
  wait?: Duration;
  /** Whether the lease is renewed for as long as the method runs. */
  autoExtend?: boolean;
  /** Whether a call made by a holder of the same keys goes through; `false` makes it an error at once. */
  reentrant?: boolean;
  /** The longest time that renewals keep the lock; after it the lock is lost. */
  maxHold?: Duration;
  /** `'shared'`: calls that ask for `'shared'`, too, run at the same time; one that is `'exclusive'` (default) runs alone. */
  mode?: 'exclusive' | 'shared';
  /** So many calls may run at the same time; not over several masters. */
  limit?: number;
  /** The shortest time that the keys stay taken, from when the lock was acquired, however short the work is. At most the `ttl`. */
  minHold?: Duration;
  /** When the keys are free: `'when-done'` (default), or `'on-expiry'`, a whole TTL later: at most one run in that time. */
  release?: 'when-done' | 'on-expiry';
  /**
   * What the method returns. Default `'promise'`, which includes `async *` methods. The lock is held to the end of a stream.
   *
   * Unsubscribing from an Observable gives the lock back; a promise behind the Observable goes on without it: use an async method. In
   * a handler it is given back when the source ends, though a timeout or the client has unsubscribed (endless ones need `maxHold`);
   * in an `@Sse` handler, and over RPC and WebSocket, by unsubscribing.
   */
  returns?: 'promise' | 'observable' | 'iterable';
  /**
   * What a call answers that does not get the lock. `'throw'` (default): `LockNotAcquiredError`. `'skip'`: `undefined`, or
   * an empty stream. A function: what it returns, which must fit the method's own result.
   */
  onLocked?: 'throw' | 'skip' | ((context: LockedContext) => unknown);
  /** The `name` under which the `LockService` was registered. Default: the one without a name. */
  instance?: string | symbol;
}

/** What `O` is without options: nothing is known of them, while an `onLocked` function still gets its context's type. */
type NoOptions = WithLockOptions | Record<never, never>;

declare const notInferred: unique symbol;

/** What `O` becomes when the options do not fit at all. The compiler has complained of them then, where they stand: that is enough. */
interface KnownOptions extends WithLockOptions {
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
  descriptor: TypedPropertyDescriptor<M> & Check<Problems<T, M, K, O>>,
) => void;

/**
 * The first problem, as a property that no descriptor has: the compiler reports it as missing and prints the sentence.
 * `unknown`, which asks for nothing, when all of them are `never`.
 */
type Check<Problems> = Problems extends [infer First, ...infer Others]
  ? [First] extends [never]
    ? Check<Others>
    : { readonly withLock: First }
  : unknown;

/** Everything that this decorator makes the compiler say. */
interface Say {
  static: '@WithLock needs an instance, which has its LockService by injection: make the method non-static.';
  method: '@WithLock goes on methods only: move the work of this accessor into an async method.';
  promise: 'A locked method must always return a Promise: make it async.';
  sayObservable: "This method returns an Observable: add the option returns: 'observable'.";
  sayIterable: "This method returns an async iterable: add the option returns: 'iterable'.";
  observable: "returns: 'observable' is for methods that return an rxjs Observable: remove it, or return one.";
  iterable: "returns: 'iterable' is for methods that return an async iterable: remove it, or return one.";
  key: "The key function does not fit the method: annotate its parameters, and `this` if it has one, with the types of the method's own.";
  skip: "onLocked: 'skip' answers undefined: add undefined to the method's result, or give onLocked a function.";
  fallback: "The result of onLocked does not fit the method's result: return such a value (literals: as const).";
  vague: "The compiler must see returns and onLocked: declare the options with 'satisfies WithLockOptions'.";
}

/** A list, in the order in which they are told; each is a sentence of `Say`, or `never`. */
type Problems<T, M, K, O> = typeof notInferred extends keyof O
  ? []
  : [M] extends [(...args: infer A) => infer R]
    ? [
        StaticProblem<T>,
        UnknownOption<keyof O>,
        VagueOption<O>,
        KeyProblem<K, A, T>,
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

/** Behind `: WithLockOptions` the two options that decide about types are optional, so their values are out of sight. */
type VagueOption<O, Name = 'returns' | 'onLocked'> = Name extends keyof O
  ? Record<never, never> extends Pick<O, Name>
    ? Say['vague']
    : never
  : never;

export type KeyProblem<K, A extends readonly unknown[], T> = K extends
  LockKeys | ((this: T, ...args: A) => LockKeys)
  ? never
  : Say['key'];

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
  : OnLocked extends 'throw' | undefined | ((context: never) => Answer)
    ? never
    : Say['fallback'];
