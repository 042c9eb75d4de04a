import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { finished } from 'node:stream';
import { StreamableFile, type ExecutionContext } from '@nestjs/common';
import type { HandlerFrame } from '../methods/handler-frame.js';

/** Express' objects are Node's own, Fastify's have them as `raw`. */
type OrRaw<T> = T & { readonly raw?: T };

/** What `@Res({ passthrough: true })` notes on the class, by method: Nest still sends the answer. */
const PASSTHROUGH = '__responsePassthrough__';

/**
 * The end of the response, where the handler's work ends with it and not with its result: it answered with a stream, or it took the
 * response into its own hands (`@Res()`) and has not ended it yet. `undefined` where the result was the end.
 */
export function responseEnd(
  context: ExecutionContext,
  value: unknown,
  { args, locked }: HandlerFrame,
): Promise<void> | undefined {
  if (context.getType<string>() !== 'http') return undefined;
  const response = context.switchToHttp().getResponse<OrRaw<ServerResponse>>();
  const raw = response.raw ?? response;
  const tookOver =
    (value === undefined || value === response) &&
    args.some((arg) => arg === response || arg === raw) &&
    Reflect.getMetadata(PASSTHROUGH, context.getClass(), locked.propertyKey) !== true;
  if ((!tookOver && !isStream(value)) || raw.writableEnded) return undefined;
  const request = context.switchToHttp().getRequest<OrRaw<{ readonly socket: Socket }>>();
  return overOf(raw, (request.raw ?? request).socket);
}

/** A response that waits behind others on its connection (pipelining) is not told when that is cut. */
function overOf(response: ServerResponse, socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const over = (): void => {
      socket.off('close', over);
      resolve();
    };
    finished(response, { readable: false }, over);
    if (socket.destroyed) over();
    else socket.once('close', over);
  });
}

function isStream(value: unknown): boolean {
  if (value instanceof StreamableFile) return true;
  if (typeof value !== 'object' || value === null) return false;
  return Symbol.asyncIterator in value || typeof (value as { pipe?: unknown }).pipe === 'function';
}
