import 'reflect-metadata';
import { LockConfigurationError } from '../../errors.js';
import { checkKey } from '../../key/index.js';
import type { Lead } from '../../leader/lead.js';
import { LEAD, LEAD_ELSEWHERE } from '../../leader/lead-options.js';
import { inPlace } from '../../options/in-place.js';
import { resolve, type OptionsOf } from '../../options/schema.js';
import { refuseUnknown, type Kind } from '../../options/unknown-option.js';
import { SERVICE } from '../methods/method-options.js';

const LEADER_METHOD = { ...LEAD, ...SERVICE };

/** Options of `@Leader`. Options that are left out come from the module's options. */
export interface LeaderMethodOptions extends OptionsOf<typeof LEAD>, OptionsOf<typeof SERVICE> {}

export const LEADER_KIND: Kind<typeof LEADER_METHOD> = {
  called: '@Leader',
  options: LEADER_METHOD,
  elsewhere: {
    ...LEAD_ELSEWHERE,
    onElected: 'The method is what is called.',
    onLost: 'The signal of the lead aborts: lead.signal.addEventListener("abort", …).',
  },
};

/** What `@Leader` records of a method. */
export interface Led {
  readonly name: string;
  readonly options: LeaderMethodOptions;
  /** `ReportsService.lead`, for events. */
  readonly method: string;
}

const LED = Symbol('holdfast:led');

export const ledOf = (method: object): Led | undefined =>
  Reflect.getMetadata(LED, method) as Led | undefined;

/** A decorator that compiles only on methods that may be called with a `Lead`, and with nothing else. */
type LeaderDecorator = <M extends (lead: Lead) => unknown>(
  target: object,
  propertyKey: string | symbol,
  descriptor: TypedPropertyDescriptor<M>,
) => void;

/**
 * Calls a method of a provider when this instance of the application is elected. At any time at most one instance
 * leads, for as long as it lives.
 *
 * - The instance stays the leader after the method has returned.
 * - If the method throws, the error is logged. The instance steps down, and is a candidate again later.
 * - If the lock is lost, and at the shutdown, `lead.signal` aborts. The next leader is elected when the method has
 *   ended.
 *
 * Elections begin when the application has started. The provider must not be request-scoped.
 *
 * @param name The name that instances compete for. It is the key of the lock, and the same in all instances.
 * @example
 * ```ts
 * import { Leader, type Lead } from 'nestjs-holdfast';
 *
 * class Reports {
 *   @Leader('reports')
 *   async write({ signal }: Lead): Promise<void> {
 *     while (!signal.aborted) await writeReport();
 *   }
 * }
 * ```
 */
export function Leader(name: string, options: LeaderMethodOptions = {}): LeaderDecorator {
  return (target, propertyKey, descriptor) => {
    const method: unknown = (descriptor as PropertyDescriptor | undefined)?.value;
    const called = `${target.constructor.name}.${String(propertyKey)}`;
    const where = `@Leader on ${called}`;
    if (typeof method !== 'function' || typeof target === 'function')
      throw new LockConfigurationError(`${where} can only be applied to instance methods.`);
    refuseUnknown({ ...LEADER_KIND, called: where }, options);
    inPlace(where, () => {
      resolve(LEADER_KIND.options, options);
      checkKey(name);
    });
    const led: Led = { name, options, method: called };
    Reflect.defineMetadata(LED, led, method);
  };
}
