import { Inject, type InjectionToken } from '@nestjs/common';
import type { LockService } from '../lock.service.js';

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
    const called = serviceName === undefined ? '' : ` named "${String(serviceName)}"`;
    // Nest prints it when it cannot inject: it says what to do.
    this.#symbol = Symbol(
      `the LockService of @WithLock: import a RedisLockModule${called} in this application`,
    );
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
    return typeof instance === 'object' && instance !== null
      ? this.#services.get(instance)
      : undefined;
  }

  bind(instance: object, service: LockService): void {
    this.#services.set(instance, service);
  }
}
