import { LockEngine } from '../../engine/lock-engine.js';

/**
 * What Nest injects into objects of decorated classes. It is keyed by a symbol and kept beside the object, so that spreading, comparing or
 * freezing the object changes nothing, and no field of the application's is touched.
 */
export class Injected<T> {
  readonly #symbol: symbol;
  readonly #values = new WeakMap<object, T>();

  constructor(symbol: symbol) {
    this.#symbol = symbol;
  }

  /**
   * Has Nest inject into every instance that it makes of the class, or of one that extends it.
   *
   * @param decorators say what Nest injects
   */
  install(prototype: object, ...decorators: readonly PropertyDecorator[]): void {
    if (Object.hasOwn(prototype, this.#symbol)) return;
    const values = this.#values;
    Object.defineProperty(prototype, this.#symbol, {
      configurable: true,
      set(this: object, value: T) {
        values.set(this, value);
      },
    });
    for (const decorate of decorators) decorate(prototype, this.#symbol);
  }

  get(instance: unknown): T | undefined {
    return this.#values.get(instance as object);
  }

  set(instance: object, value: T): void {
    this.#values.set(instance, value);
  }
}

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

/** The `LockService` of objects of decorated classes. One slot for each service name: a class may use several services. */
export class ServiceSlot extends Injected<NamedLocks> {
  /** The `name` of the service that belongs here. */
  readonly serviceName: string | symbol | undefined;

  constructor(serviceName: string | symbol | undefined) {
    // Nest prints it when it cannot inject: it says what to do.
    super(Symbol(`the LockService of @WithLock: ${importRemedy(serviceName)}`));
    this.serviceName = serviceName;
  }

  override get(instance: unknown): NamedLocks | undefined {
    const injected = super.get(instance);
    return injected instanceof LockEngine ? injected : undefined;
  }

  /** Whether another object was injected instead of the service: a mock of a test. */
  hasStandIn(instance: unknown): boolean {
    return this.get(instance) === undefined && super.get(instance) !== undefined;
  }
}

const slots = new Map<string | symbol | undefined, ServiceSlot>();

/** The slot for the service of this name. */
export function slotFor(serviceName: string | symbol | undefined): ServiceSlot {
  const slot = slots.get(serviceName) ?? new ServiceSlot(serviceName);
  slots.set(serviceName, slot);
  return slot;
}
