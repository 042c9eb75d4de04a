import { Logger, HttpException } from '@nestjs/common';
import { LockEngine } from '../engine/lock-engine.js';
import { thisMachine } from '../engine/machine.js';
import type { LockModuleOptions } from '../options/lock-module-options.js';
import { systemRuntime, type Runtime } from '../time/runtime.js';
import { refuseDefaults } from './handlers/start-up-checks.js';
import { bindLockedMethods } from './methods/bind.js';
import { byHand, LockFeature } from './methods/lock-feature.js';
import { lockedMethodsOf } from './methods/locked-methods-of.js';
import type { LockFeatureOptions } from './methods/method-options.js';
import { DefinedLock } from './definitions/defined-lock.js';
import type { LockDefinition } from './definitions/definition.types.js';
import { LockError } from '../errors.js';
import { warnOfFormerName } from '../errors/former-names.js';

interface LockServiceSettings {
  readonly name?: string | symbol | undefined;
  readonly runtime?: Runtime;
}

/** The locks of an application, as an injectable service. Each `LockModule.forRoot` registers one. */
export class LockService extends LockEngine {
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
    this.name = name;
  }

  /**
   * Connects an object that Nest did not create to this service, so that its `@WithLock` methods work. Returns the
   * object.
   *
   * @param defaults what `LockModule.forFeature` would give its methods. The object belongs to no module, so a factory in a
   *   module with `forFeature` has to give the same options here.
   * @throws LockConfigurationError for options of these methods that this service cannot fulfil, such as `limit` over
   *   several masters, and for `defaults` of a handler
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
  bind<T extends object>(instance: T, defaults?: LockFeatureOptions): T {
    const own = new Map(byHand.get(instance));
    if (defaults === undefined) own.delete(this.name);
    else {
      for (const locked of lockedMethodsOf(instance)) refuseDefaults(instance, locked);
      own.set(this.name, new LockFeature(defaults, 'bind()'));
    }
    byHand.set(instance, own);
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
   * await locks.for(orderLock).run('42', () => ship('42'));
   * ```
   */
  for<Template extends string>(definition: LockDefinition<Template>): DefinedLock<Template> {
    const known = this.#defined.get(definition) as DefinedLock<Template> | undefined;
    if (known !== undefined) return known;
    const defined = new DefinedLock<Template>(definition, this);
    this.#defined.set(definition, defined);
    return defined;
  }

  /** @deprecated `for` is its name now. The next minor version removes this one. */
  use<Template extends string>(definition: LockDefinition<Template>): DefinedLock<Template> {
    warnOfFormerName('The method LockService.use()', 'for()');
    return this.for(definition);
  }
}

/**
 * The type of the `LockService` of a `LockDriver`, whose locks have no fencing tokens.
 *
 * @example
 * ```ts
 * import { InjectLockService, type DriverLockService } from 'nestjs-holdfast';
 *
 * class Orders {
 *   constructor(@InjectLockService() private readonly locks: DriverLockService) {}
 * }
 * ```
 */
export interface DriverLockService
  extends LockEngine<undefined>, Pick<LockService, 'bind' | 'name'> {
  /** As `LockService.for`. */
  for<Template extends string>(
    definition: LockDefinition<Template>,
  ): DefinedLock<Template, undefined>;
  /** @deprecated `for` is its name now. The next minor version removes this one. */
  use<Template extends string>(
    definition: LockDefinition<Template>,
  ): DefinedLock<Template, undefined>;
}

const textOf = (name: string | symbol | undefined): string | undefined =>
  typeof name === 'symbol' ? (name.description ?? 'symbol') : name;

/**
 * Makes Nest's `HttpException` the superclass of our errors at run time, as their type declares. So any filter, of
 * Nest's or the application's, answers with the right status.
 *
 * The engine, which a command line uses without Nest, must not load Nest. A second set of classes would need a
 * translation wherever an error leaves, and would miss a way: promises, signals, handles, streams.
 */
Object.setPrototypeOf(LockError, HttpException);
Object.setPrototypeOf(LockError.prototype, HttpException.prototype);
