import 'reflect-metadata';
import type { LockedMethod } from '../methods/locked-method.js';
import { MESSAGE } from './handler-parameters.js';
import { PATTERN } from './microservices.js';

/** What `@MessagePattern`, `@EventPattern`, `@GrpcMethod` and `@SubscribeMessage` note on a handler. */
const OF_HANDLERS = [PATTERN, MESSAGE];

/**
 * Refuses keys of message handlers that may mean a parameter as well as a part of the request. Where parameters have decorators this is
 * known when the class is defined; these handlers need none, and are known by decorators that may stand above `@WithLock`.
 *
 * @throws LockConfigurationError
 */
export function refuseAmbiguous(instance: object, locked: LockedMethod): void {
  const handler: unknown = Reflect.get(instance, locked.propertyKey);
  if (typeof handler !== 'function') return;
  if (OF_HANDLERS.some((key) => Reflect.hasMetadata(key, handler))) locked.checkHandler();
}
