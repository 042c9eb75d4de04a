import 'reflect-metadata';
import { LockConfigurationError } from '../../errors.js';
import { checkKey } from '../../key/index.js';
import type { Lead } from '../../leader/lead.js';
import { inPlace } from '../../options/in-place.js';
import { resolve } from '../../options/schema.js';
import { refuseUnknown } from '../../options/unknown-option.js';
import { LEADER_KIND, type LeaderMethodOptions } from './leader-options.js';
import { noteLed } from './led-methods.js';

/** What compiles only on methods that may be called with a `Lead`, and with nothing else. */
type LeaderDecorator = <M extends (lead: Lead) => unknown>(
  target: object,
  propertyKey: string | symbol,
  descriptor: TypedPropertyDescriptor<M>,
) => void;

/**
 * Has a method of a provider called on one instance of the application at a time, for as long as that lives: when it is elected, with its
 * `Lead`. The lead goes on when the method returns. When the method throws, that is logged, and the instance steps down and stands again
 * later. At the shutdown, and when the lead is lost, `lead.signal` aborts; the next leader is elected when the method has ended.
 *
 * Starts when the application has. The provider must not depend on the request.
 *
 * @param name what is led: the key of the lock, in all instances
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
    noteLed(method, { name, options, method: called, where });
  };
}
