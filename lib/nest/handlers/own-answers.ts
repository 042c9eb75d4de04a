import 'reflect-metadata';
import type { CanActivate } from '@nestjs/common';
import { MetadataScanner, type ApplicationConfig, type DiscoveryService } from '@nestjs/core';
import { callOf, configurations, LockErrorFilter } from './lock-error.filter.js';
import { LockErrorInterceptor } from './lock-error.interceptor.js';

/** The metadata in which Nest notes what messages a handler is for. */
export const PATTERN = 'microservices:pattern';

/** The metadata of `@WebSocketGateway`. */
const GATEWAY = 'websockets:is_gateway';

/** The metadata in which Nest notes that a method is a route, and the filters and interceptors of a class. */
const [METHOD, FILTERS] = ['method', '__exceptionFilters__'];
export const INTERCEPTORS = '__interceptors__';

/** The first guard of an application: a hybrid one without `inheritAppConfig` applies none of them. */
const configurationNote = (config: ApplicationConfig): CanActivate => ({
  canActivate: (context) => {
    if (context.getType() === 'rpc') configurations.set(callOf(context), config);
    return true;
  },
});

/** One of each for all applications of the process: they know nothing of any. */
const interceptor = new LockErrorInterceptor();
const filter = new LockErrorFilter();

export const isGateway = (type: object): boolean => Reflect.hasMetadata(GATEWAY, type);

/**
 * Answers lock errors, including those of guards and services, where Nest applies nothing of the application: it would
 * report "Internal server error", and log nothing. Filters of the class run before ours. Call it before Nest connects
 * gateways and microservices, which it does when the application is initialized.
 *
 * - Gateways get no filter of the application.
 * - Controllers of microservices get no interceptor and no filter of a hybrid application without `inheritAppConfig`.
 */
export function answerOurselves(discovery: DiscoveryService, config: ApplicationConfig): void {
  for (const { metatype } of discovery.getProviders())
    if (typeof metatype === 'function' && isGateway(metatype)) enhance(metatype, FILTERS, filter);
  let found = false;
  for (const { metatype } of discovery.getControllers()) {
    if (typeof metatype !== 'function') continue;
    const methods = methodsOf(metatype.prototype as object);
    const procedures = methods.filter((method) => Reflect.hasMetadata(PATTERN, method));
    if (procedures.length === 0) continue;
    found = true;
    enhance(metatype, INTERCEPTORS, interceptor);
    // A filter of the class would go before those of the application for its routes, too.
    if (!methods.some(isRoute)) enhance(metatype, FILTERS, filter);
    else if (!Reflect.hasMetadata(FILTERS, metatype))
      for (const method of procedures) if (!isRoute(method)) enhance(method, FILTERS, filter);
  }
  if (found) config.addGlobalGuard(configurationNote(config));
}

/**
 * Puts one before those that `@UseFilters` or `@UseInterceptors` named: the first interceptor sees errors last, and the first filter is
 * asked last.
 */
export function enhance(target: object, kind: string, enhancer: object): void {
  Reflect.defineMetadata(kind, [enhancer, ...enhancersOf(target, kind, enhancer)], target);
}

/** The filters or interceptors that a decorator named, without this one. */
export function enhancersOf(target: object, kind: string, without: object): readonly object[] {
  const present = (Reflect.getMetadata(kind, target) ?? []) as readonly object[];
  return present.filter((each) => each !== without);
}

/** The objects that `@UseFilters` was given on a class or its methods. */
export function givenFilters(metatype: unknown): readonly object[] {
  if (typeof metatype !== 'function') return [];
  return [metatype, ...methodsOf(metatype.prototype as object)]
    .flatMap((target) => (Reflect.getMetadata(FILTERS, target) ?? []) as unknown)
    .filter((filter) => typeof filter === 'object' && filter !== null);
}

export const isRoute = (method: object): boolean => Reflect.hasMetadata(METHOD, method);

const methodsOf = (prototype: object): readonly object[] =>
  new MetadataScanner()
    .getAllMethodNames(prototype)
    .map((name) => Reflect.get(prototype, name) as object);
