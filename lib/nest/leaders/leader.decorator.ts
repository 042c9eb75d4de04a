import 'reflect-metadata';
import { Inject } from '@nestjs/common';
import { LockConfigurationError, LockKeyError } from '../../errors.js';
import { checkKey } from '../../key/index.js';
import type { Lead } from '../../leader/lead.js';
import { LEAD, LEAD_ELSEWHERE } from '../../leader/lead-options.js';
import { inPlace } from '../../options/in-place.js';
import { plain, resolve, type OptionsOf } from '../../options/schema.js';
import { refuseUnknown, type Kind } from '../../options/unknown-option.js';
import { SERVICE } from '../methods/method-options.js';
import { importRemedy, Injected } from '../methods/service-slot.js';
import { getLockServiceToken } from '../tokens.js';

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
 * Elections begin after the last `onApplicationBootstrap`, before the application listens. The provider must have the default scope.
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
  refuseBare(name, options);
  return (target, propertyKey, descriptor) => {
    const method: unknown = (descriptor as PropertyDescriptor | undefined)?.value;
    const called = `${target.constructor.name}.${String(propertyKey)}`;
    const where = `@Leader on ${called}`;
    if (typeof method !== 'function' || typeof target === 'function')
      throw new LockConfigurationError(`${where} can only be applied to instance methods.`);
    refuseUnknown({ ...LEADER_KIND, called: where }, options);
    inPlace(where, () => resolve(LEADER_KIND.options, options));
    refuseWrongName(where, name);
    if (ledOf(method) !== undefined)
      throw new LockConfigurationError(`${called} has @Leader twice. Keep one of them.`);
    const led: Led = { name, options: plain(LEADER_METHOD, options), method: called };
    Reflect.defineMetadata(LED, led, method);
    const { instance } = options;
    // Nest starts nothing where this service is missing, and prints the text.
    const slot = new Injected(Symbol(`the LockService of ${where}: ${importRemedy(instance)}`));
    slot.install(target, Inject(getLockServiceToken(instance)));
  };
}

/**
 * Without its parentheses, the decorator is called with what it decorates: a class, or a prototype and a name.
 *
 * @throws LockConfigurationError
 */
function refuseBare(first: unknown, second: unknown): void {
  const member = typeof second === 'string' || typeof second === 'symbol' ? second : undefined;
  const isPrototype = typeof first === 'object' && first !== null && member !== undefined;
  if (typeof first !== 'function' && !isPrototype) return;
  const owner = typeof first === 'function' ? first : first.constructor;
  const on = member === undefined ? owner.name : `${owner.name}.${String(member)}`;
  throw new LockConfigurationError(
    `@Leader on ${on} needs parentheses, and a name in them: @Leader('reports').`,
  );
}

/** @throws LockConfigurationError */
function refuseWrongName(where: string, name: unknown): void {
  if (typeof name !== 'string')
    throw new LockConfigurationError(
      `${where} needs the name that instances compete for: @Leader('reports').`,
    );
  try {
    checkKey(name);
  } catch (error) {
    throw error instanceof LockKeyError
      ? new LockConfigurationError(`${where}: ${error.detail}`)
      : error;
  }
}
