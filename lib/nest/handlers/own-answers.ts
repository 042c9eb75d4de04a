import 'reflect-metadata';
import {
  Catch,
  type ArgumentsHost,
  type CanActivate,
  type ExceptionFilter,
  type Type,
} from '@nestjs/common';
import { MetadataScanner, type ApplicationConfig, type DiscoveryService } from '@nestjs/core';
import { LockError } from '../../errors.js';
import { reportFault } from '../transports/faults.js';
import { transportOf } from '../transports/transport-of.js';
import { LockErrorInterceptor } from './lock-error.interceptor.js';

/** The metadata in which Nest notes what messages a handler is for. */
export const PATTERN = 'microservices:pattern';

/** The metadata of `@WebSocketGateway`, and of `@Catch` with the classes of a filter. */
const [GATEWAY, CATCHES] = ['websockets:is_gateway', '__filterCatchExceptions__'];

/** The metadata in which Nest notes that a method is a route, and the filters and interceptors of a class. */
const [METHOD, FILTERS, INTERCEPTORS] = ['method', '__exceptionFilters__', '__interceptors__'];

/** The configuration of the application, by what a call has of its own beside its data. */
const configurations = new WeakMap<object, ApplicationConfig>();

const callOf = (host: ArgumentsHost): object => host.getArgByIndex<object | undefined>(1) ?? {};

/** The first guard of an application: a hybrid one without `inheritAppConfig` applies none of them. */
const configurationNote = (config: ApplicationConfig): CanActivate => ({
  canActivate: (context) => {
    if (context.getType() === 'rpc') configurations.set(callOf(context), config);
    return true;
  },
});

/** Answers lock errors as the application does where its filters are applied. */
@Catch(LockError)
class OwnFilter implements ExceptionFilter<LockError> {
  catch(error: LockError, host: ArgumentsHost): unknown {
    const filters = configurations.get(callOf(host))?.getGlobalFilters() ?? [];
    const filter = filters.findLast((each) => catches(each, error));
    if (filter !== undefined) return filter.catch(error, host) as unknown;
    reportFault(error);
    return transportOf(host).respond(error, host);
  }
}

/** Whether Nest would ask the filter about the error. */
export function catches(filter: ExceptionFilter, error: unknown): boolean {
  const classes = (Reflect.getMetadata(CATCHES, filter.constructor) ?? []) as readonly Type[];
  return classes.length === 0 || classes.some((each) => error instanceof each);
}

/** One of each for all applications of the process: they know nothing of any. */
const interceptor = new LockErrorInterceptor();
const filter = new OwnFilter();

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
 * Puts one before those that `@UseFilters` or `@UseInterceptors` named, once: the first interceptor sees errors last, and the first filter
 * is asked last.
 */
function enhance(target: object, kind: string, enhancer: object): void {
  const present = (Reflect.getMetadata(kind, target) ?? []) as readonly object[];
  if (!present.includes(enhancer)) Reflect.defineMetadata(kind, [enhancer, ...present], target);
}

const isRoute = (method: object): boolean => Reflect.hasMetadata(METHOD, method);

const methodsOf = (prototype: object): readonly object[] =>
  new MetadataScanner()
    .getAllMethodNames(prototype)
    .map((name) => Reflect.get(prototype, name) as object);
