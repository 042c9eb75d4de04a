import { LockKeyError } from '../../errors.js';
import {
  canonicalKeys,
  parseKeyTemplate,
  type KeyTemplate,
  type RequestValues,
} from '../../key/index.js';
import {
  holdModeFrom,
  placesFrom,
  placesWithoutLimit,
  refuseLongMinHold,
  type RunOptions,
} from '../../options/acquire-options.js';
import type { LockOrigin } from '../../lease/grant.js';
import { inPlace } from '../../options/in-place.js';
import { resolve, type Schema } from '../../options/schema.js';
import { refuseUnknown, type Elsewhere } from '../../options/unknown-option.js';
import { PARAMETERS } from '../handlers/handler-parameters.js';
import { refuseNoKey, refuseNoOptions } from './decorator-arguments.js';
import type { Clock } from '../../time/clock.js';
import { FireTime } from './fire-time.js';
import type { LockFeature } from './lock-feature.js';
import { Locking, type MethodOptions } from './locking.js';
import { returnedPlaces, type PlacesFunction, type WithLockOptions } from './method-options.js';
import { slotFor, type ServiceSlot } from './service-slot.js';
import type { LockKeys, WithLockKey } from './with-lock.types.js';

type Method = (...args: unknown[]) => unknown;

/** The kinds of results that a locked method can give; a generator is seen by the kind of function. */
export type ReturnKind = 'promise' | 'observable' | 'iterable';

/** What a method was called with. */
export interface Invocation {
  /** The object of the call: `this` of a key function. */
  readonly self: unknown;
  readonly args: readonly unknown[];
  /** The class, where there is no object yet. */
  readonly className?: string;
  /** What the module of its class imports. */
  readonly feature?: LockFeature | undefined;
}

/** The method that is decorated. */
interface DecoratedMethod {
  /** The prototype of its class. */
  readonly target: object;
  readonly propertyKey: string | symbol;
  /** As it was found, possibly wrapped by other decorators. */
  readonly method: Method;
}

/** What is said of it. */
interface LockTerms {
  readonly key: WithLockKey;
  readonly options: object | undefined;
}

/** What is different from one decorator to another. */
export interface LockDecorator {
  /** `@WithLock` */
  readonly called: string;
  readonly options: Schema;
  readonly elsewhere: Elsewhere;
  /** Options of its lock which its callers have no say in. */
  readonly always: Pick<RunOptions, 'reentrant'>;
  /** How long calls wait by default; `undefined`: as the service's options say. */
  readonly usualWait: 0 | undefined;
  /** Whether `keyPrefix` of the module is left out. */
  readonly isWholeKey?: boolean;
  /** Whether the method is work that is to be done once. */
  readonly isOnce?: boolean;
}

/** What `@WithLock` or `@RunOnce` says of one method: parsed and checked once, when its class is defined. */
export class LockedMethod {
  /** The decorator, as it is called. */
  readonly decorator: string;
  /** For messages: `OrdersService.pay`. */
  readonly name: string;
  /** For messages about the decorator: `@WithLock on OrdersService.pay`. */
  readonly where: string;
  readonly propertyKey: string | symbol;
  readonly kind: ReturnKind;
  readonly onLocked: NonNullable<WithLockOptions['onLocked']>;
  readonly locking: Locking;
  readonly slot: ServiceSlot;
  /** Whether the arguments decide about the keys or the places, which handlers have only after their pipes. */
  readonly needsArguments: boolean;
  /** For events and traces. */
  readonly origin: LockOrigin;
  readonly isOnce: boolean;
  readonly #isWholeKey: boolean;
  readonly #limit: number | undefined;
  readonly #places: PlacesFunction | undefined;
  readonly #keys: readonly KeyTemplate[] | ((this: never, ...args: never[]) => LockKeys);

  constructor(
    { target, propertyKey, method }: DecoratedMethod,
    said: LockTerms,
    decorator: LockDecorator,
  ) {
    const owner = target.constructor;
    const { called } = decorator;
    this.name = `${owner.name}.${String(propertyKey)}`;
    this.propertyKey = propertyKey;
    this.decorator = called;
    this.isOnce = decorator.isOnce === true;
    this.#isWholeKey = decorator.isWholeKey === true;
    this.where = `${called} on ${this.name}`;
    const { where } = this;
    const { key } = said;
    refuseNoKey(where, key, called);
    const given = said.options ?? {};
    refuseNoOptions(where, given, called);
    refuseUnknown({ ...decorator, called: where }, given);
    const options = inPlace(where, () => optionsFrom(decorator.options, given));
    this.kind = isAsyncGenerator(method) ? 'iterable' : (options.returns ?? 'promise');
    this.onLocked = options.onLocked ?? 'throw';
    this.locking = new Locking(options, decorator);
    this.slot = slotFor(options.instance);
    this.#limit = options.limit;
    this.#places = typeof options.places === 'function' ? options.places : undefined;
    if (typeof key === 'function') {
      this.origin = Object.freeze({ method: this.name });
      this.#keys = key as (this: never, ...args: never[]) => LockKeys;
      this.needsArguments = true;
      return;
    }
    const templates: readonly string[] = typeof key === 'string' ? [key] : key;
    this.origin = Object.freeze({ method: this.name, template: templates.join(', ') });
    const fireTime = new FireTime(() => [Reflect.get(target, propertyKey), method]);
    this.#keys = templates.map((template) =>
      parseKeyTemplate(template, {
        where,
        method,
        owner,
        name: propertyKey,
        isHandler: hasParameterDecorators(owner, propertyKey),
        fireTime,
      }),
    );
    this.needsArguments =
      this.#places !== undefined || this.#keys.some(({ usesArguments }) => usesArguments);
  }

  /**
   * For when the class is defined, with all of its decorators.
   *
   * @throws LockConfigurationError
   */
  check(instance: object): void {
    for (const template of this.templates) template.check(classNameOf(instance));
  }

  /**
   * For a method that is called with a request, though its parameters have no decorators.
   *
   * @throws LockConfigurationError
   */
  checkHandler(): void {
    for (const template of this.templates) template.checkHandler();
  }

  /** The templates of its keys; none when a function makes them. */
  get templates(): readonly KeyTemplate[] {
    return typeof this.#keys === 'function' ? [] : this.#keys;
  }

  /** What may be wrong with its templates, and is no error. */
  get doubts(): readonly string[] {
    return this.templates.flatMap(({ source, literals }) =>
      literals
        .filter(({ isParameter }) => isParameter)
        .map(
          ({ word, text }) =>
            `${this.where}: the key ${JSON.stringify(source)} has "${text}", which is plain text, so all calls share one lock. ` +
            `For the parameter write <${word}>.`,
        ),
    );
  }

  /**
   * The options of one call.
   *
   * @param run as of every call
   * @throws LockConfigurationError for what its `places` function returned
   */
  optionsOf({ self, args }: Invocation, run: RunOptions): RunOptions {
    const made = this.#places;
    if (made === undefined) return run;
    const limit = this.#limit;
    return inPlace(this.where, () => {
      const returned: unknown = made.call(self as never, ...(args as never));
      const places = returnedPlaces.resolve(returned, 'places');
      return { ...run, places: placesFrom({ limit, places }) };
    });
  }

  /**
   * The keys of one call.
   *
   * @param request of a handler's call: its sender is to blame for bad values
   * @throws LockKeyError
   */
  resolve(call: Invocation, request: RequestValues | undefined, clock: Clock): readonly string[] {
    const { self, args, className = classNameOf(self), feature } = call;
    const made = this.#keys;
    const prefixed = (keys: LockKeys): readonly string[] => {
      const own = canonicalKeys(keys);
      return feature === undefined || this.#isWholeKey
        ? own
        : canonicalKeys(own.map((key) => feature.keyPrefix + key));
    };
    if (typeof made === 'function')
      return this.#named(request, () => prefixed(made.call(self as never, ...(args as never[]))));
    const keys = made.map((template) => template.resolve(args, request, clock, className));
    return this.#named(request, () => prefixed(keys));
  }

  /** What is wrong with a key that no template made says of which method it is. */
  #named<T>(request: RequestValues | undefined, make: () => T): T {
    try {
      return make();
    } catch (error) {
      if (!(error instanceof LockKeyError)) throw error;
      const problem = `${this.where}: ${error.detail}`;
      throw new LockKeyError({ problem, fromRequest: request !== undefined });
    }
  }
}

function classNameOf(instance: unknown): string | undefined {
  if (typeof instance !== 'object' || instance === null) return undefined;
  const { constructor: owner } = instance as { constructor?: unknown };
  return typeof owner === 'function' ? owner.name : undefined;
}

/** The decorators of parameters have run by now: they come before those of methods. */
const hasParameterDecorators = (owner: object, propertyKey: string | symbol): boolean =>
  Reflect.getMetadata(PARAMETERS, owner, propertyKey) !== undefined;

/** Also through the Proxy of another decorator. */
const isAsyncGenerator = (method: Method): boolean =>
  Object.prototype.toString.call(method) === '[object AsyncGeneratorFunction]';

/** @throws LockConfigurationError */
function optionsFrom(schema: Schema, given: object): MethodOptions {
  const options: MethodOptions = resolve(schema, given);
  holdModeFrom(options);
  const { limit, places } = options;
  // What a function returns is checked at each call.
  if (typeof places !== 'function') placesFrom({ limit, places });
  else if (limit === undefined) throw placesWithoutLimit('a function');
  refuseLongMinHold(options.minHoldMs ?? 0, options.ttlMs ?? Infinity);
  return options;
}
