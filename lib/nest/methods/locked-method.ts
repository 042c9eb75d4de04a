import { types } from 'node:util';
import { Logger } from '@nestjs/common';
import { LockKeyError, LockNotAcquiredError } from '../../errors.js';
import type { ScopeOrigin } from '../../engine/granting.js';
import {
  canonicalKeys,
  parseKeyTemplate,
  type KeyTemplate,
  type RequestValues,
} from '../../key/index.js';
import {
  constantOptions,
  optionsOver,
  placesFrom,
  refuseSeveral,
  type MethodRunOptions,
  type RunOptions,
} from '../../options/acquire-options.js';
import { lockNameOf, type LockOrigin } from '../../lease/lock-request.js';
import { inPlace } from '../../options/in-place.js';
import { plain } from '../../options/schema.js';
import { refuseUnknown, type Kind } from '../../options/unknown-option.js';
import type { Scope } from '../../sections/scope.js';
import { PARAMETERS } from '../transports/transport.js';
import { FireTime } from './fire-time.js';
import { byHand, features, type LockFeature } from './lock-feature.js';
import {
  checkedOptions,
  optionsRemedy,
  refuseNoKey,
  returnedPlaces,
  type MethodOptions,
} from './method-options.js';
import { slotFor, type NamedLocks, type ServiceSlot } from './service-slot.js';
import type { KeyFunction, LockKeys, WithLockKey } from './with-lock.types.js';

const logger = new Logger('Holdfast');

/** One call of a method. */
export interface Invocation {
  /** The object of the call: `this` of a key function. */
  readonly self: unknown;
  readonly args: readonly unknown[];
  /** The class, where there is no object yet. */
  readonly className?: string;
  /** What goes for its object, or for what the module of its class makes. */
  readonly feature: LockFeature | undefined;
  /** The request of a handler's call: its sender is to blame for bad values. */
  readonly request?: RequestValues;
}

/** A decorator, which says what is different from one to another. */
export interface LockDecorator extends Kind {
  /** Whether `keyPrefix` of the module is left out. */
  readonly isWholeKey?: boolean;
  /** Whether the method is work that is to be done once. */
  readonly isOnce?: boolean;
  /** The method is a job: its key has the fire time where there is one, and its schedule decides about its options. */
  readonly scheduled?: (options: MethodOptions, fireTime: FireTime) => MethodRunOptions;
}

/** A decorated method, and the arguments of the decorator. */
interface DecoratedMethod {
  /** The prototype of its class. */
  readonly target: object;
  readonly propertyKey: string | symbol;
  /** As it was found, possibly wrapped by other decorators. */
  readonly method: (...args: unknown[]) => unknown;
  readonly key: WithLockKey;
  readonly options: object | undefined;
}

/** How a method locks. */
interface Locking {
  /** Without what the service's options decide about. */
  readonly run: RunOptions;
  /** Inside the lock of its handler's frame. */
  readonly nested: RunOptions;
}

/** What `onLocked` says of a call that another caller keeps from its lock. */
export interface Refusal {
  /** Whether the call returns nothing. */
  readonly skip: boolean;
  readonly answer: unknown;
}

/** What `@WithLock` or `@RunOnce` says of one method: parsed and checked once, when its class is defined. */
export class LockedMethod {
  readonly decorator: LockDecorator;
  /** For messages: `OrdersService.pay`. */
  readonly name: string;
  /** For messages about the decorator: `@WithLock on OrdersService.pay`. */
  readonly where: string;
  readonly propertyKey: string | symbol;
  /** What the method returns; a generator is seen by the kind of function. */
  readonly kind: NonNullable<MethodOptions['returns']>;
  readonly slot: ServiceSlot;
  /** Whether the arguments decide about the keys or the places, which handlers have only after their pipes. */
  readonly needsArguments: boolean;
  /** For events and traces. */
  readonly origin: LockOrigin;
  readonly #templates: readonly KeyTemplate[];
  /** The key of a job whose runs have no fire time. */
  readonly #withoutTime: readonly KeyTemplate[] | undefined;
  readonly #fireTime: FireTime;
  readonly #options: MethodOptions;
  /** What it says of its lock. */
  readonly #said: RunOptions;
  /** How it locks in each module that its class is in: worked out once. */
  readonly #lockings = new WeakMap<object, Locking>();
  readonly #keyFunction: KeyFunction | undefined;
  /** For each service, the values of its key that a warning was logged for. */
  readonly #warned = new WeakMap<NamedLocks, Set<string>>();

  constructor(
    decorator: LockDecorator,
    { target, propertyKey, method, key, options }: DecoratedMethod,
  ) {
    const owner = target.constructor;
    const { called } = decorator;
    this.decorator = decorator;
    this.name = `${owner.name}.${String(propertyKey)}`;
    this.propertyKey = propertyKey;
    this.where = `${called} on ${this.name}`;
    const { where } = this;
    refuseNoKey(where, key, called);
    const given = options ?? {};
    refuseUnknown({ ...decorator, called: where }, given, () => optionsRemedy(given, called));
    this.#options = inPlace(where, () => checkedOptions(decorator.options, given));
    const { returns = 'promise', instance, places } = this.#options;
    this.kind = isAsyncGenerator(method) ? 'iterable' : returns;
    this.slot = slotFor(instance);
    this.#said = saidOf(plain(decorator.options, given), decorator);
    this.#keyFunction = typeof key === 'function' ? key : undefined;
    const sources: readonly string[] = typeof key === 'function' ? [] : [key].flat();
    if (this.#options.onLocked === 'replace')
      inPlace(where, () => {
        refuseSeveral(sources);
      });
    const template = sources.length === 0 ? {} : { template: sources.join(', ') };
    this.origin = Object.freeze({ method: this.name, ...template });
    const fireTime = new FireTime(() => [Reflect.get(target, propertyKey), method]);
    this.#fireTime = fireTime;
    // The decorators of parameters have run by now: they come before those of methods.
    const isHandler = Reflect.getMetadata(PARAMETERS, owner, propertyKey) !== undefined;
    const context = { where, method, owner, name: propertyKey, isHandler, fireTime };
    const parsed = (each: string): KeyTemplate => parseKeyTemplate(each, context);
    const isJob = decorator.scheduled !== undefined;
    this.#templates = sources.map((source) => parsed(isJob ? `${source}:<fireTime>` : source));
    this.#withoutTime = isJob ? sources.map(parsed) : undefined;
    this.needsArguments =
      this.#keyFunction !== undefined ||
      typeof places === 'function' ||
      this.#templates.some(({ usesArguments }) => usesArguments);
  }

  /** The templates of its keys; none when a function makes them. For when the class is defined, with all of its decorators. */
  get templates(): readonly KeyTemplate[] {
    return this.#withoutTime === undefined || this.#fireTime.isKnown
      ? this.#templates
      : this.#withoutTime;
  }

  /**
   * For when the class is defined, with all of its decorators.
   *
   * @throws LockConfigurationError
   */
  check(instance: object): void {
    for (const template of this.templates) template.check(classNameOf(instance));
  }

  /** What goes for the methods of an object. */
  featureOf(self: unknown): LockFeature | undefined {
    return byHand.get(self as object)?.get(this.slot.serviceName) ?? features.get(self);
  }

  /** @param feature that of its object, or of the module of its class */
  lockingIn(feature: LockFeature | undefined): Locking {
    const known = this.#lockings.get(feature ?? this);
    if (known !== undefined) return known;
    const { isOnce, scheduled } = this.decorator;
    const run = constantOptions({
      ...optionsOver({ ...feature?.options }, this.#said),
      isMethod: isOnce !== true,
      ...scheduled?.(this.#options, this.#fireTime),
    });
    const locking = { run, nested: constantOptions({ ...run, reentrant: true }) };
    this.#lockings.set(feature ?? this, locking);
    return locking;
  }

  /**
   * Opens the section of a call, under a lock of its own. Rejects with what `LockService.acquire` rejects with.
   *
   * @throws LockKeyError
   * @throws LockConfigurationError for what its `places` function returned
   */
  open(service: NamedLocks, call: Invocation, from: ScopeOrigin): Promise<Scope> {
    const keys = this.keysOf(service, call);
    const options = service.checked(() => this.#optionsOf(call));
    return service.openScope(keys, options, { ...from, origin: this.origin });
  }

  /**
   * The keys of a call.
   *
   * @throws LockKeyError
   */
  keysOf(service: NamedLocks, call: Invocation): readonly string[] {
    return service.checked(() => {
      try {
        return this.#resolve(service, call);
      } catch (error) {
        if (error instanceof LockKeyError) {
          error.nameLock(lockNameOf(this.origin));
          if (error.fromRequest) this.#warnOfKey(service, error);
        }
        throw error;
      }
    });
  }

  /** Whether calls may succeed without the method, and return what it does not. */
  get mayReplaceMethod(): boolean {
    return this.decorator.isOnce === true || this.#onLocked === 'skip';
  }

  /** What calls do that are refused their lock, in words. */
  get whenHeld(): string {
    const onLocked = this.#onLocked;
    if (onLocked === 'throw') return 'fail with LockNotAcquiredError';
    if (onLocked === 'replace') return 'take the place of its holder';
    return onLocked === 'skip' ? 'are skipped' : 'return what onLocked returns';
  }

  /** What a call that is refused its lock returns. Any other error is thrown again. */
  async refused(args: readonly unknown[], error: unknown): Promise<Refusal> {
    const onLocked = this.#onLocked;
    if (!(error instanceof LockNotAcquiredError)) throw error;
    if (onLocked === 'throw' || onLocked === 'replace') throw error;
    if (onLocked === 'skip') return { skip: true, answer: undefined };
    const { keys, retryAfterMs } = error;
    return { skip: false, answer: await onLocked({ keys, args, retryAfterMs, error }) };
  }

  get #onLocked(): NonNullable<MethodOptions['onLocked']> {
    return this.#options.onLocked ?? (this.decorator.scheduled === undefined ? 'throw' : 'skip');
  }

  #optionsOf({ self, args, feature }: Invocation): RunOptions {
    const { run } = this.lockingIn(feature);
    const { limit, places: made } = this.#options;
    if (typeof made !== 'function') return run;
    return inPlace(this.where, () => {
      const returned = unawaited(made.call(self as never, ...(args as never)));
      const places = returnedPlaces.resolve(returned, 'places');
      return { ...run, places: placesFrom({ limit, places }) };
    });
  }

  #resolve({ runtime }: NamedLocks, call: Invocation): readonly string[] {
    const { self, args, className = classNameOf(self), feature, request } = call;
    const keys = this.templates.map((each) => each.resolve(args, request, runtime, className));
    try {
      const own = canonicalKeys(
        this.#keyFunction === undefined
          ? keys
          : (unawaited(Reflect.apply(this.#keyFunction, self, args)) as LockKeys),
      );
      return feature === undefined || this.decorator.isWholeKey === true
        ? own
        : canonicalKeys(own.map((key) => feature.keyPrefix + key));
    } catch (error) {
      // What is wrong with a key that no template made says of which method it is.
      if (!(error instanceof LockKeyError)) throw error;
      const problem = `${this.where}: ${error.detail}`;
      throw new LockKeyError({ problem, fromRequest: request !== undefined });
    }
  }

  /**
   * The client is notified that its request is at fault. If every request is, the key itself is wrong, and only this
   * warning shows it.
   */
  #warnOfKey(service: NamedLocks, { what = '', detail }: LockKeyError): void {
    const warned = this.#warned.get(service) ?? new Set();
    if (warned.has(what)) {
      logger.debug(detail);
      return;
    }
    this.#warned.set(service, warned.add(what));
    const templates = this.templates.map(({ source }) => JSON.stringify(source));
    const key = templates.length > 0 ? templates.join(', ') : 'a function';
    logger.warn(
      `${detail} The request was answered with 400, and this is logged once. If all requests are, the key of this handler (${key}) is ` +
        'wrong: is a name misspelt, or set by a guard that this route does not have?',
    );
  }
}

/** What it says of its lock. A function that counts places is asked at each call. */
function saidOf(given: RunOptions, { isOnce }: LockDecorator): RunOptions {
  const said = Object.entries(given).filter(
    ([name, value]) =>
      typeof value !== 'function' &&
      // What else it says is for when the lock was refused.
      (name !== 'onLocked' || value === 'replace'),
  );
  // A nested call of such work could neither wait for the outer section nor tell its own work from the work of that section.
  return { ...Object.fromEntries(said), ...(isOnce === true && { reentrant: false }) };
}

function classNameOf(instance: unknown): string | undefined {
  if (typeof instance !== 'object' || instance === null) return undefined;
  const { constructor: owner } = instance as { constructor?: unknown };
  return typeof owner === 'function' ? owner.name : undefined;
}

/** A Promise, or a list of them, is refused. If one rejects as well, that would be an unhandled rejection, which ends the process. */
function unawaited(returned: unknown): unknown {
  for (const each of [returned].flat()) if (types.isPromise(each)) each.catch(() => undefined);
  return returned;
}

/** Also through the Proxy of another decorator. */
const isAsyncGenerator = (method: object): boolean =>
  Object.prototype.toString.call(method) === '[object AsyncGeneratorFunction]';
