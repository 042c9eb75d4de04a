import { Logger } from '@nestjs/common';
import { LockEngine } from '../engine/lock-engine.js';
import { thisMachine } from '../engine/machine.js';
import { LockKeyError } from '../errors.js';
import type { RequestValues } from '../key/index.js';
import { inPlace } from '../options/in-place.js';
import type { LockModuleOptions } from '../options/lock-module-options.js';
import { systemRuntime, type Runtime } from '../time/runtime.js';
import './http-exceptions.js';
import { bindLockedMethods } from './methods/bind.js';
import { DefinedLock } from './definitions/defined-lock.js';
import type { LockDefinition } from './definitions/definition.types.js';
import type { LockFeature } from './methods/lock-feature.js';
import type { Invocation, LockedMethod } from './methods/locked-method.js';

interface LockServiceSettings {
  readonly name?: string | symbol | undefined;
  readonly runtime?: Runtime;
}

/** Locks by hand. Injected; one per `RedisLockModule`. */
export class LockService extends LockEngine {
  readonly #logger: Logger;
  /** Of each handler: the values of its key that somebody was warned of. */
  readonly #warnedOf = new WeakMap<LockedMethod, Set<string>>();

  readonly #defined = new WeakMap<object, object>();

  /** The `name` that the module registered it under. */
  readonly name: string | symbol | undefined;

  /** Applications get theirs from `RedisLockModule`; by hand, call `open()` first and `shutdown()` at the end. */
  constructor(
    options: LockModuleOptions,
    { name, runtime = systemRuntime }: LockServiceSettings = {},
  ) {
    const log = new Logger('Holdfast');
    super(options, { runtime, log, name: textOf(name), machine: thisMachine() });
    this.#logger = log;
    this.name = name;
  }

  /**
   * Gives an object that Nest did not make, so that it got no injection, the service for its `@WithLock` methods.
   *
   * @throws LockConfigurationError for options of theirs that this service cannot fulfil: `limit` over several masters
   */
  bind<T extends object>(instance: T): T {
    bindLockedMethods(instance, this);
    return instance;
  }

  /**
   * The lock of a definition, taken by this service: `locks.use(orderLock).run(orderId, work)`. The same object for each call, so it may be
   * kept, or provided: `{ provide: OrderLock, useFactory: (locks) => locks.use(orderLock), inject: [LockService] }`.
   *
   * @throws LockConfigurationError for options of the definition that do not fit this service
   */
  use<Template extends string>(definition: LockDefinition<Template>): DefinedLock<Template> {
    const known = this.#defined.get(definition) as DefinedLock<Template> | undefined;
    if (known !== undefined) return known;
    const defined = new DefinedLock(definition, this);
    this.#defined.set(definition, defined);
    return defined;
  }

  /** @internal The keys of a decorated call. */
  keysOf(
    locked: LockedMethod,
    call: Invocation,
    request: RequestValues | undefined,
  ): readonly string[] {
    return this.checked(() => {
      try {
        return locked.resolve(call, request, this.runtime);
      } catch (error) {
        if (error instanceof LockKeyError && error.fromRequest) this.#warnOfKey(locked, error);
        throw error;
      }
    });
  }

  /**
   * @internal Whether the options of decorated calls fit those of the service.
   *
   * @throws LockConfigurationError
   */
  checkOptions(locked: LockedMethod, feature: LockFeature | undefined): void {
    inPlace(locked.where, () => {
      this.assertFits(locked.locking.in(feature).run);
    });
  }

  /** The client is told that its request is at fault. Where every request is, it is the key, and nobody else would say so. */
  #warnOfKey(locked: LockedMethod, { what = '', detail }: LockKeyError): void {
    const warned = this.#warnedOf.get(locked) ?? new Set();
    if (warned.has(what)) {
      this.#logger.debug(detail);
      return;
    }
    this.#warnedOf.set(locked, warned.add(what));
    const templates = locked.templates.map(({ source }) => JSON.stringify(source));
    const key = templates.length > 0 ? templates.join(', ') : 'a function';
    this.#logger.warn(
      `${detail} The request was answered with 400, and this is logged once. If all requests are, the key of this handler (${key}) is ` +
        'wrong: is a name misspelt, or set by a guard that this route does not have?',
    );
  }
}

const textOf = (name: string | symbol | undefined): string | undefined =>
  typeof name === 'symbol' ? (name.description ?? 'symbol') : name;
