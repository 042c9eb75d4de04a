import type { DiscoveryService } from '@nestjs/core';
import { LockConfigurationError } from '../../errors.js';
import type { Lead } from '../../leader/lead.js';
import type { LockService } from '../lock.service.js';
import { methodsOf } from '../methods/locked-methods-of.js';
import { ledOf, type Led } from './leader.decorator.js';

type Provider = ReturnType<DiscoveryService['getProviders']>[number];

interface LedMethod extends Led {
  readonly key: string | symbol;
}

/** The led methods that calls of an object would reach: an override without `@Leader` replaces a led method. */
function ledMethodsOf({ instance, metatype }: Provider): readonly LedMethod[] {
  const object: unknown = instance;
  const prototype =
    typeof object === 'object' && object !== null
      ? (Object.getPrototypeOf(object) as object | null)
      : // An arrow function that is a factory has no prototype.
        ((metatype as { prototype?: object } | null)?.prototype ?? null);
  const reached = new Map<string | symbol, Led | undefined>();
  for (const { name, method } of methodsOf(prototype))
    if (!reached.has(name)) reached.set(name, ledOf(method));
  return [...reached].flatMap(([key, led]) => (led === undefined ? [] : [{ ...led, key }]));
}

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
    for (const { method, options } of ledMethodsOf(provider)) {
      if (options.instance !== serviceName || provider.isDependencyTreeStatic()) continue;
      throw new LockConfigurationError(
        `@Leader on ${method}: its class depends on the request, and a leader is called without one. Move the method into a provider that does not.`,
      );
    }
  }
}

/** Makes all of them candidates, each object once. */
export function startLeaders(providers: readonly Provider[], service: LockService): void {
  const ofObjects = new Map(providers.map((each) => [each.instance as unknown, each]));
  for (const [instance, provider] of ofObjects) {
    if (typeof instance !== 'object' || instance === null) continue;
    for (const { key, name, method, options } of ledMethodsOf(provider)) {
      const { instance: serviceName, ...leadOptions } = options;
      if (serviceName !== service.name) continue;
      const onElected = (lead: Lead): unknown =>
        (instance as Record<string | symbol, (lead: Lead) => unknown>)[key]?.(lead);
      service.leadFrom(name, { ...leadOptions, onElected }, { origin: { method } });
    }
  }
}
