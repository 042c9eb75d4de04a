import { Logger } from '@nestjs/common';
import { LockEngine } from '../engine/lock-engine.js';
import { thisMachine } from '../engine/machine.js';
import { LockKeyError } from '../errors.js';
import type { RequestValues } from '../key/index.js';
import { lockNameOf } from '../lease/grant.js';
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

/** The locks of an application, as an injectable service. Each `LockModule.forRoot` registers one. */
export class LockService extends LockEngine {
  readonly #logger: Logger;
  /** For each handler, the values of its key that a warning was logged for. */
  readonly #warnedOf = new WeakMap<LockedMethod, Set<string>>();

  readonly #defined = new WeakMap<object, object>();

  /** The `name` that the module registered it under. */
  readonly name: string | symbol | undefined;

  /** `LockModule` makes the service of an application. By hand, call `open()` first and `shutdown()` at the end. */
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
   * Connects an object that Nest did not create to this service, so that its `@WithLock` methods work. Returns the
   * object.
   *
   * @throws LockConfigurationError for options of these methods that this service cannot fulfil, such as `limit` over
   *   several masters
   * @example
   * ```ts
   * import { WithLock } from 'nestjs-holdfast';
   *
   * class Worker {
   *   @WithLock('report')
   *   async report(): Promise<void> {
   *     await writeReport();
   *   }
   * }
   * const worker = locks.bind(new Worker());
   * ```
   */
  bind<T extends object>(instance: T): T {
    bindLockedMethods(instance, this);
    return instance;
  }

  /**
   * Returns the locks of a definition, taken by this service. Each call returns the same object, so you may keep it or
   * provide it.
   *
   * @throws LockConfigurationError for options of the definition that do not fit this service
   * @example
   * ```ts
   * import { defineLock } from 'nestjs-holdfast';
   *
   * const orderLock = defineLock('order:<orderId>');
   * await locks.use(orderLock).run('42', () => ship('42'));
   * ```
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
        if (error instanceof LockKeyError) {
          error.nameLock(lockNameOf(locked.origin));
          if (error.fromRequest) this.#warnOfKey(locked, error);
        }
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
      if (locked.isOnce) this.once.assertPossible();
    });
  }

  /**
   * The client is notified that its request is at fault. If every request is, the key itself is wrong, and only this
   * warning shows it.
   */
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
