import 'reflect-metadata';
import {
  Catch,
  type ArgumentsHost,
  type CanActivate,
  type ExceptionFilter,
  type ExecutionContext,
} from '@nestjs/common';
import { MetadataScanner, type ApplicationConfig, type DiscoveryService } from '@nestjs/core';
import { LockError } from '../../errors.js';
import { reportFault } from '../transports/faults.js';
import { transportOf } from '../transports/transport-of.js';
import { catches } from './catches.js';
import { enhance } from './enhance.js';
import { LockErrorInterceptor } from './lock-error.interceptor.js';

/** Where Nest notes what messages a handler is for. */
export const PATTERN = 'microservices:pattern';

/** Where Nest notes that a method is a route, and what filters a class has. */
const [METHOD, FILTERS] = ['method', '__exceptionFilters__'] as const;

/** The configuration of the application, by what a call has of its own beside its data. */
const configurations = new WeakMap<object, ApplicationConfig>();

const callOf = (host: ArgumentsHost): object => host.getArgByIndex<object | undefined>(1) ?? {};

/** The first guard of an application: a hybrid one without `inheritAppConfig` applies none of them. */
class ConfigurationNote implements CanActivate {
  readonly #config: ApplicationConfig;

  constructor(config: ApplicationConfig) {
    this.#config = config;
  }

  canActivate(context: ExecutionContext): boolean {
    if (context.getType() === 'rpc') configurations.set(callOf(context), this.#config);
    return true;
  }
}

/** Answers lock errors of guards, as the application does where its filters are applied. */
@Catch(LockError)
class ProceduresFilter implements ExceptionFilter<LockError> {
  catch(error: LockError, host: ArgumentsHost): unknown {
    const filters = configurations.get(callOf(host))?.getGlobalFilters() ?? [];
    const filter = filters.toReversed().find((each) => catches(each, error));
    if (filter !== undefined) return filter.catch(error, host) as unknown;
    reportFault(error);
    return transportOf(host).respond(error, host);
  }
}

/** One of each for all applications of the process: they know nothing of any. */
const interceptor = new LockErrorInterceptor();
const procedures = new ProceduresFilter();

/**
 * Answers lock errors of controllers of microservices. A hybrid application without `inheritAppConfig` applies no
 * interceptor and no filter of the application to them. It reports our errors as "Internal server error", and logs
 * nothing.
 *
 * Filters of the application run before ours. Call it before Nest connects the microservices.
 */
export function answerOnMicroservices(
  discovery: DiscoveryService,
  config: ApplicationConfig,
): void {
  let found = false;
  for (const { metatype } of discovery.getControllers()) {
    if (typeof metatype !== 'function') continue;
    const methods = methodsOf(metatype.prototype as object);
    const procedureMethods = methods.filter((method) => Reflect.hasMetadata(PATTERN, method));
    if (procedureMethods.length === 0) continue;
    found = true;
    enhance(metatype, '__interceptors__', interceptor);
    // A filter of the class would go before those of the application for its routes, too.
    if (!methods.some(isRoute)) enhance(metatype, FILTERS, procedures);
    else if (!Reflect.hasMetadata(FILTERS, metatype))
      for (const method of procedureMethods)
        if (!isRoute(method)) enhance(method, FILTERS, procedures);
  }
  if (found) config.addGlobalGuard(new ConfigurationNote(config));
}

const isRoute = (method: object): boolean => Reflect.hasMetadata(METHOD, method);

const methodsOf = (prototype: object): readonly object[] =>
  new MetadataScanner()
    .getAllMethodNames(prototype)
    .map((name) => Reflect.get(prototype, name) as object);
