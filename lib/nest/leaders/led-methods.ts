import type { DiscoveryService } from '@nestjs/core';
import { LockConfigurationError } from '../../errors.js';
import type { Lead } from '../../leader/lead.js';
import type { LockService } from '../lock.service.js';
import { methodsOf } from '../methods/locked-methods-of.js';
import { forRootOf } from '../methods/service-slot.js';
import { getLockServiceToken } from '../tokens.js';
import { ledOf, type Led } from './leader.decorator.js';

type Provider = ReturnType<DiscoveryService['getProviders']>[number];

interface LedMethod extends Led {
  readonly key: string | symbol;
  /** The method without `@Leader` that replaces it. */
  readonly override: string | undefined;
}

/** The led methods of an object: of several that override each other, the one that calls would reach first. */
function ledMethodsOf(provider: Provider): readonly LedMethod[] {
  const nearest = new Map<string | symbol, string>();
  const led = new Map<string | symbol, LedMethod>();
  for (const { prototype, name: key, method } of methodsOf(prototypeOf(provider))) {
    const noted = ledOf(method);
    if (noted !== undefined && !led.has(key))
      led.set(key, { ...noted, key, override: nearest.get(key) });
    if (!nearest.has(key)) nearest.set(key, `${prototype.constructor.name}.${String(key)}`);
  }
  return [...led.values()];
}

/** The prototype of the object, or of the class where Nest makes no object at the start. A factory is provided as its class. */
function prototypeOf({ instance, isFactory, token, metatype }: Provider): object | null {
  const object: unknown = instance;
  if (typeof object === 'object' && object !== null)
    return Object.getPrototypeOf(object) as object | null;
  const type: unknown = isFactory ? token : metatype;
  // An arrow function that is a factory has no prototype.
  return typeof type === 'function' ? ((type.prototype as object | undefined) ?? null) : null;
}

/**
 * Checks the led methods when the application starts.
 *
 * @returns what leads nowhere, and may be meant to
 * @throws LockConfigurationError where there is no service, or no instance to call
 */
export function checkLeaders(
  providers: readonly Provider[],
  controllers: readonly Provider[],
  enhancers: readonly Provider[],
): readonly string[] {
  const warnings: string[] = [];
  const tokens = new Set(providers.map(({ token }) => token));
  const led = new Set(providers.flatMap(ledMethodsOf).map(({ method }) => method));
  const others = enhancers.filter(({ token }) => !tokens.has(token));
  for (const provider of [...providers, ...controllers, ...others]) {
    for (const { method, override, options } of ledMethodsOf(provider)) {
      // The guard AdminAuth inherits what the provider Auth leads.
      if (others.includes(provider) && led.has(method)) continue;
      const where = `@Leader on ${method}`;
      if (override !== undefined) {
        warnings.push(
          `${override} overrides ${method}, which has @Leader, and is not called. Repeat @Leader there if it is to lead.`,
        );
        continue;
      }
      if (!tokens.has(getLockServiceToken(options.instance)))
        throw new LockConfigurationError(
          `${where}: its LockService is missing. Import ${forRootOf(options.instance)}, or correct "instance".`,
        );
      const problem = controllers.includes(provider)
        ? 'its class is a controller'
        : (unfitScopeOf(provider) ??
          (others.includes(provider) ? 'its class is no provider' : undefined));
      if (problem !== undefined)
        throw new LockConfigurationError(
          `${where}: ${problem}. Move the method into a provider of the default scope.`,
        );
    }
  }
  return warnings;
}

/** The scope of a provider that has no instance for the whole application, in words. */
function unfitScopeOf(provider: Provider): string | undefined {
  if (provider.isTransient)
    return 'its class is transient, so each class that injects it has an object of its own';
  return provider.isDependencyTreeStatic()
    ? undefined
    : 'its class depends on the request, and a leader is called without one';
}

/** Makes all of them candidates, each object once. */
export function startLeaders(providers: readonly Provider[], service: LockService): void {
  const ofObjects = new Map(providers.map((each) => [each.instance as unknown, each]));
  for (const [instance, provider] of ofObjects) {
    if (typeof instance !== 'object' || instance === null) continue;
    for (const { key, name, method, override, options } of ledMethodsOf(provider)) {
      const { instance: serviceName, ...leadOptions } = options;
      if (serviceName !== service.name || override !== undefined) continue;
      const onElected = (lead: Lead): unknown =>
        (instance as Record<string | symbol, (lead: Lead) => unknown>)[key]?.(lead);
      service.leadFrom(name, { ...leadOptions, onElected }, { origin: { method } });
    }
  }
}
