import 'reflect-metadata';
import { MetadataScanner, type DiscoveryService } from '@nestjs/core';
import { enhance } from './enhance.js';
import { LockErrorInterceptor } from './lock-error.interceptor.js';

/** Where Nest notes what messages a handler is for. */
export const PATTERN = 'microservices:pattern';

/** Of all applications of the process: it knows nothing of any. */
const interceptor = new LockErrorInterceptor();

/**
 * Has lock errors of controllers of microservices answered: a hybrid application without `inheritAppConfig` applies no interceptor of the
 * application to them, takes our errors for "Internal server error", and logs nothing. For before Nest connects them.
 */
export function answerOnMicroservices(discovery: DiscoveryService): void {
  for (const { metatype } of discovery.getControllers())
    if (typeof metatype === 'function' && hasPatterns(metatype.prototype as object))
      enhance(metatype, '__interceptors__', interceptor);
}

const hasPatterns = (prototype: object): boolean =>
  new MetadataScanner()
    .getAllMethodNames(prototype)
    .some((name) => Reflect.hasMetadata(PATTERN, Reflect.get(prototype, name) as object));
