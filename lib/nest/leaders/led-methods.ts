import 'reflect-metadata';
import { LockConfigurationError } from '../../errors.js';
import type { Lead } from '../../leader/lead.js';
import type { LockService } from '../lock.service.js';
import type { LeaderMethodOptions } from './leader-options.js';

/** What `@Leader` records of a method. */
interface Led {
  readonly name: string;
  readonly options: LeaderMethodOptions;
  /** `ReportsService.lead`, for events. */
  readonly method: string;
  /** For messages: `@Leader on ReportsService.lead`. */
  readonly where: string;
}

/** The part of a provider of Nest that is needed. */
interface Provider {
  readonly instance: unknown;
  readonly metatype: unknown;
  isDependencyTreeStatic(): boolean;
}

const LED = Symbol('holdfast:led');

export function noteLed(method: object, led: Led): void {
  Reflect.defineMetadata(LED, led, method);
}

/** The led methods that calls of an object would reach: an override without `@Leader` replaces a led method. */
function* ledMethodsOf(
  prototype: object | null,
): Generator<{ readonly led: Led; readonly key: string | symbol }> {
  const seen = new Set<string | symbol>();
  for (
    let each = prototype;
    each !== null && each !== Object.prototype;
    each = Object.getPrototypeOf(each) as object | null
  ) {
    for (const key of Reflect.ownKeys(each)) {
      if (seen.has(key)) continue;
      seen.add(key);
      const method: unknown = Object.getOwnPropertyDescriptor(each, key)?.value;
      if (typeof method !== 'function') continue;
      const led = Reflect.getMetadata(LED, method) as Led | undefined;
      if (led !== undefined) yield { led, key };
    }
  }
}

const prototypeOf = ({ instance, metatype }: Provider): object | null => {
  if (typeof instance === 'object' && instance !== null)
    return Object.getPrototypeOf(instance) as object | null;
  // An arrow function that is a factory has no prototype.
  return typeof metatype === 'function'
    ? ((metatype.prototype as object | undefined) ?? null)
    : null;
};

/**
 * Checks the led methods when the application starts.
 *
 * @throws LockConfigurationError for a provider that Nest creates for each request: there is no instance to call
 */
export function checkLeaders(
  providers: readonly Provider[],
  serviceName: string | symbol | undefined,
): void {
  for (const provider of providers) {
    for (const { led } of ledMethodsOf(prototypeOf(provider))) {
      if (led.options.instance !== serviceName || provider.isDependencyTreeStatic()) continue;
      throw new LockConfigurationError(
        `${led.where}: its class depends on the request, and a leader is called without one. Move the method into a provider that does not.`,
      );
    }
  }
}

/** Makes all of them candidates, each object once. */
export function startLeaders(providers: readonly Provider[], service: LockService): void {
  const started = new Set<object>();
  for (const provider of providers) {
    const { instance } = provider;
    if (typeof instance !== 'object' || instance === null || started.has(instance)) continue;
    started.add(instance);
    for (const { led, key } of ledMethodsOf(prototypeOf(provider))) {
      const { instance: serviceName, ...options } = led.options;
      if (serviceName !== service.name) continue;
      const onElected = (lead: Lead): unknown =>
        (instance as Record<string | symbol, (lead: Lead) => unknown>)[key]?.(lead);
      service.leadFrom(led.name, { ...options, onElected }, { method: led.method });
    }
  }
}
