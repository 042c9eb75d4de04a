import 'reflect-metadata';
import { LockConfigurationError } from '../../errors.js';
import { isGateway } from './gateways.js';
import { PATTERN } from './microservices.js';
import type { LockedMethod } from '../methods/locked-method.js';

const OF_GATEWAYS: readonly unknown[] = ['afterInit', 'handleConnection', 'handleDisconnect'];

/** Where `@nestjs/bullmq` notes that a method listens to its emitters. */
const OF_EMITTERS = [
  ['bullmq:worker_events_metadata', '@OnWorkerEvent()'],
  ['bullmq:queue_events_metadata', '@OnQueueEvent()'],
] as const;

/**
 * Refuses locks on methods whose result Nest ignores: a refused lock would be an unhandled rejection, and end the
 * process.
 *
 * @throws LockConfigurationError
 */
export function refuseUnheard(instance: object, locked: LockedMethod): void {
  const { where, propertyKey } = locked;
  const calls = callsOf(instance, propertyKey);
  if (calls === undefined) return;
  throw new LockConfigurationError(
    `${where}: Nest calls ${calls} without looking what becomes of it, so a refused lock would end the process. Lock inside of it, with ` +
      'tryRun() or run() in a try block.',
  );
}

function callsOf(instance: object, propertyKey: string | symbol): string | undefined {
  if (OF_GATEWAYS.includes(propertyKey) && isGateway(instance.constructor))
    return `${String(propertyKey)}() of a gateway`;
  const handler: unknown = Reflect.get(instance, propertyKey);
  if (typeof handler !== 'function') return undefined;
  const listens = OF_EMITTERS.find(([key]) => Reflect.hasMetadata(key, handler));
  if (listens !== undefined) return `a method with ${listens[1]}`;
  const patterns = [Reflect.getMetadata(PATTERN, handler) as unknown].flat();
  return patterns.some(isOfCall) ? 'a method with @GrpcStreamCall()' : undefined;
}

/** Whether the handler is given the call of gRPC itself. */
const isOfCall = (pattern: unknown): boolean =>
  typeof pattern === 'object' &&
  pattern !== null &&
  'streaming' in pattern &&
  pattern.streaming === 'pt_stream';
