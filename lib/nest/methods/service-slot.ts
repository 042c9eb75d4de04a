import { LockEngine } from '../../engine/lock-engine.js';
import { Injected } from './injected.js';

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
