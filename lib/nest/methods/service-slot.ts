import { Inject, type InjectionToken } from '@nestjs/common';
import { LockEngine } from '../../engine/lock-engine.js';

/** A `LockService`, as decorated methods know it. */
export interface NamedLocks extends LockEngine {
  /** The `name` that the module registered it under. */
  readonly name: string | symbol | undefined;
}

/** The call that registers a service. */
export function forRootOf(serviceName: string | symbol | undefined): string {
  return serviceName === undefined
    ? 'LockModule.forRoot({ … })'
    : `LockModule.forRoot({ name: ${spelled(serviceName)}, … })`;
}

/** The same call of a unit test. */
export const testingForRootOf = (serviceName: string | symbol | undefined): string =>
  `LockTestingModule.forRoot(${serviceName === undefined ? '' : `{ name: ${spelled(serviceName)} }`})`;

const spelled = (serviceName: string | symbol): string =>
  typeof serviceName === 'symbol' ? String(serviceName) : `'${serviceName}'`;

/** What to do where Nest does not find what `LockModule` provides. */
export const importRemedy = (serviceName?: string | symbol): string =>
  `in a test, import ${testingForRootOf(serviceName)} from nestjs-holdfast/testing; in an application, import ${forRootOf(serviceName)} ` +
  'in the root module, or, with isGlobal: false, in this module';

/**
 * Where the objects of decorated classes keep the `LockService` that Nest injects into them. Keyed by a symbol and kept beside the
 * object, so that spreading, comparing or freezing it changes nothing and no field of the application's is touched. One slot for
 * each service name: a class may use several services.
 */
export class ServiceSlot {
  /** The `name` of the service that belongs here. */
  readonly serviceName: string | symbol | undefined;
  readonly #symbol: symbol;
  readonly #services = new WeakMap<object, NamedLocks>();
  readonly #installed = new WeakSet();

  constructor(serviceName: string | symbol | undefined) {
    this.serviceName = serviceName;
    // Nest prints it when it cannot inject: it says what to do.
    this.#symbol = Symbol(`the LockService of @WithLock: ${importRemedy(serviceName)}`);
  }

  /**
   * Has Nest inject the service into every instance that it makes of the class, or of one that extends it.
   *
   * @param token of the service
   */
  install(prototype: object, token: InjectionToken): void {
    if (this.#installed.has(prototype)) return;
    this.#installed.add(prototype);
    const services = this.#services;
    Object.defineProperty(prototype, this.#symbol, {
      configurable: true,
      get(this: object) {
        return services.get(this);
      },
      set(this: object, service: NamedLocks) {
        services.set(this, service);
      },
    });
    Inject(token)(prototype, this.#symbol);
  }

  get(instance: unknown): NamedLocks | undefined {
    const service = this.#injectedInto(instance);
    return service instanceof LockEngine ? service : undefined;
  }

  /** Whether another object was injected instead of the service: a mock of a test. */
  hasStandIn(instance: unknown): boolean {
    return this.get(instance) === undefined && this.#injectedInto(instance) !== undefined;
  }

  #injectedInto(instance: unknown): NamedLocks | undefined {
    return typeof instance === 'object' && instance !== null
      ? this.#services.get(instance)
      : undefined;
  }

  bind(instance: object, service: NamedLocks): void {
    this.#services.set(instance, service);
  }
}

const slots = new Map<string | symbol | undefined, ServiceSlot>();

/** The slot for the service of this name. */
export function slotFor(serviceName: string | symbol | undefined): ServiceSlot {
  const slot = slots.get(serviceName) ?? new ServiceSlot(serviceName);
  slots.set(serviceName, slot);
  return slot;
}
