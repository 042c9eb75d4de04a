import 'reflect-metadata';
import { LockConfigurationError } from '../../errors.js';
import type { LockedMethod } from '../methods/locked-method.js';
import { MESSAGE } from './handler-parameters.js';
import { isGateway, PATTERN } from './own-answers.js';

const OF_GATEWAYS: readonly unknown[] = ['afterInit', 'handleConnection', 'handleDisconnect'];

/** Where `@nestjs/bullmq` notes that a method listens to its emitters. */
const OF_EMITTERS = [
  ['bullmq:worker_events_metadata', '@OnWorkerEvent()'],
  ['bullmq:queue_events_metadata', '@OnQueueEvent()'],
] as const;

/**
 * Refuses locks of methods that Nest calls in ways which do not fit:
 * - methods whose result it ignores. A refused lock would be an unhandled rejection, and end the process.
 * - message handlers whose key may mean a parameter as well as a part of the request. Where parameters have decorators,
 *   this is known when the class is defined; these handlers need none, and are known by decorators that may stand above
 *   `@WithLock`.
 *
 * @throws LockConfigurationError
 */
export function refuseUnfit(instance: object, locked: LockedMethod): void {
  const { where, propertyKey } = locked;
  const handler: unknown = Reflect.get(instance, propertyKey);
  const noted = (key: string): unknown =>
    typeof handler === 'function' ? Reflect.getMetadata(key, handler) : undefined;
  const calls = ignored(instance, propertyKey, noted);
  if (calls !== undefined)
    throw new LockConfigurationError(
      `${where}: Nest calls ${calls} without looking what becomes of it, so a refused lock would end the process. Lock inside of it, with ` +
        'tryRun() or run() in a try block.',
    );
  if (noted(PATTERN) !== undefined || noted(MESSAGE) !== undefined) locked.checkHandler();
}

function ignored(
  instance: object,
  propertyKey: string | symbol,
  noted: (key: string) => unknown,
): string | undefined {
  if (OF_GATEWAYS.includes(propertyKey) && isGateway(instance.constructor))
    return `${String(propertyKey)}() of a gateway`;
  const listens = OF_EMITTERS.find(([key]) => noted(key) !== undefined);
  if (listens !== undefined) return `a method with ${listens[1]}`;
  return [noted(PATTERN)].flat().some(isOfCall) ? 'a method with @GrpcStreamCall()' : undefined;
}

/** Whether the handler is given the call of gRPC itself. */
const isOfCall = (pattern: unknown): boolean =>
  (pattern as { readonly streaming?: unknown } | undefined)?.streaming === 'pt_stream';
