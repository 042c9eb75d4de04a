import { Inject, type InjectionToken } from '@nestjs/common';
import { LockEngine } from '../../engine/lock-engine.js';
import type { LockService } from '../lock.service.js';

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
 * each service token: a class may use several services.
 */
export class ServiceSlot {
  readonly token: InjectionToken;
  /** The `name` of the service that belongs here. */
  readonly serviceName: string | symbol | undefined;
  readonly #symbol: symbol;
  readonly #services = new WeakMap<object, LockService>();
  readonly #installed = new WeakSet();

  constructor(token: InjectionToken, serviceName: string | symbol | undefined) {
    this.token = token;
    this.serviceName = serviceName;
    // Nest prints it when it cannot inject: it says what to do.
    this.#symbol = Symbol(`the LockService of @WithLock: ${importRemedy(serviceName)}`);
  }

  /** Has Nest inject the service into every instance that it makes of the class, or of one that extends it. */
  install(prototype: object): void {
    if (this.#installed.has(prototype)) return;
    this.#installed.add(prototype);
    const services = this.#services;
    Object.defineProperty(prototype, this.#symbol, {
      configurable: true,
      get(this: object) {
        return services.get(this);
      },
      set(this: object, service: LockService) {
        services.set(this, service);
      },
    });
    Inject(this.token)(prototype, this.#symbol);
  }

  get(instance: unknown): LockService | undefined {
    const service = this.#injectedInto(instance);
    return service instanceof LockEngine ? service : undefined;
  }

  /** Whether another object was injected instead of the service: a mock of a test. */
  hasStandIn(instance: unknown): boolean {
    return this.get(instance) === undefined && this.#injectedInto(instance) !== undefined;
  }

  #injectedInto(instance: unknown): LockService | undefined {
    return typeof instance === 'object' && instance !== null
      ? this.#services.get(instance)
      : undefined;
  }

  bind(instance: object, service: LockService): void {
    this.#services.set(instance, service);
  }
}
