import type { Lock } from '../../lease/lock.js';
import type { LockDefinitionOptions } from '../../options/acquire-options.js';
import type { KnownOptions, NoOptions, WithLockDecorator } from '../methods/with-lock.types.js';

/** The value of a placeholder. */
export type LockKeyValue = string | number | bigint | boolean;

/** The names of the placeholders: `'orderId'` of `'order:<orderId>'`. */
export type KeyParameters<Template extends string> =
  Template extends `${string}<${infer Name}>${infer Rest}` ? Name | KeyParameters<Rest> : never;

/** The values of a key by name: `{ orderId }` for `'order:<orderId>'`. */
export type KeyValues<Template extends string> = string extends Template
  ? Readonly<Record<string, LockKeyValue>>
  : Readonly<Record<KeyParameters<Template>, LockKeyValue>>;

type IsUnion<T, Each = T> = [T] extends [never]
  ? false
  : Each extends T
    ? [T] extends [Each]
      ? false
      : true
    : never;

/**
 * What calls take for the key. A key without placeholders takes nothing, and a key with one takes the value or
 * `{ orderId }`. A key with several takes them by name, because values of one type are easily given in the wrong order.
 */
export type KeyArguments<Template extends string> = string extends Template
  ? [values: KeyValues<string>]
  : [KeyParameters<Template>] extends [never]
    ? []
    : IsUnion<KeyParameters<Template>> extends true
      ? [values: KeyValues<Template>]
      : [value: LockKeyValue | KeyValues<Template>];

export type LockWork<T, Token extends number | undefined = number> = (
  lock: Lock<Token>,
) => T | PromiseLike<T>;

/** A key and its options, written once for services, decorated methods, tests and dashboards. Made by `defineLock`. */
export interface LockDefinition<Template extends string = string> {
  /**
   * The template, which is also the `template` of events, traces and metrics: the label to search for in a dashboard.
   */
  readonly name: Template;
  /** The options as they were given. Options that are left out come from the module's options. */
  readonly options: Readonly<LockDefinitionOptions>;
  /**
   * The key for these values, for `inspect`, `LockAdmin` and tests: `orderLock.key(42)` is `'order:42'`.
   *
   * @throws LockKeyError when a value is missing or cannot stand in a key
   */
  key(...values: KeyArguments<Template>): string;
  /**
   * `@WithLock` with this key and these options. Placeholders are parameters of the method, by name. A `keyPrefix` of
   * `forFeature` is not put before the key, because the key would then differ from that of `locks.for(…)`.
   *
   * @example
   * ```ts
   * import { defineLock } from 'nestjs-holdfast';
   *
   * const orderLock = defineLock('order:<orderId>');
   *
   * class Payments {
   *   @orderLock.WithLock({ wait: '2s' })
   *   async pay(orderId: string): Promise<Receipt> {
   *     return charge(orderId);
   *   }
   * }
   * ```
   */
  readonly WithLock: <const O extends KnownOptions = NoOptions>(
    options?: O,
  ) => WithLockDecorator<Template, O>;
}
