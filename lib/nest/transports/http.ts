import type { ServerResponse } from 'node:http';
import { constants } from 'node:http2';
import type { Socket } from 'node:net';
import { finished } from 'node:stream';
import { StreamableFile, type ArgumentsHost, type ExecutionContext } from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';
import type { LockError } from '../../errors.js';
import type { RequestValues } from '../../key/index.js';
import { clientGone } from './faults.js';
import type { Transport } from './transport.js';

/** Express' objects are Node's own, Fastify's have them as `raw`. */
type OrRaw<T> = T & { readonly raw?: T };

/** What a response of HTTP/2 has in addition: it has no `destroyed`. */
interface OfHttp2 {
  readonly stream?: { readonly destroyed: boolean; close(code: number): void };
}

/** What `@Sse` notes on a handler. */
const SSE = '__sse__';

/** What `@Res({ passthrough: true })` notes on the class, by method: Nest still sends the answer. */
const PASSTHROUGH = '__responsePassthrough__';

interface Responseish {
  readonly headersSent?: boolean;
  readonly sent?: boolean;
  readonly raw?: { readonly headersSent?: boolean };
  header?(name: string, value: string): unknown;
  setHeader?(name: string, value: string): unknown;
}

/** Sets `Retry-After` on an HTTP response that has not begun. Call it from an exception filter of your own that handles lock errors. */
export function setRetryAfter(error: LockError, host: ArgumentsHost): void {
  const { retryHintMs } = error;
  const response = host.switchToHttp().getResponse<Responseish>();
  const sent = response.headersSent ?? response.raw?.headersSent ?? response.sent;
  if (retryHintMs === undefined || sent === true) return;
  const seconds = String(Math.ceil(retryHintMs / 1_000));
  // Express has both, Fastify's reply the first, the raw response that its middleware gets the second.
  if (response.header !== undefined) response.header('Retry-After', seconds);
  else response.setHeader?.('Retry-After', seconds);
}

export const httpTransport: Transport = {
  // Read when asked for: middleware and guards may still set them, on Fastify through getters.
  requestValues: (context) => context.switchToHttp().getRequest<RequestValues>(),

  streamsMessage: false,

  announce: setRetryAfter,

  failureOf: (error, host: ArgumentsHost | ExecutionContext) => {
    // Nest sends the message as an event.
    if (isSse(host)) error.addressClient();
    return error;
  },

  respond: (error, host, adapterHost) => {
    // A testing module gets its adapter after its providers.
    new BaseExceptionFilter(adapterHost?.httpAdapter).catch(error, host);
  },

  // The handler answered with a stream (Express' response is one, Fastify's is a promise of its end). Or it took
  // over the response (`@Res()`) and has not ended it yet.
  openResponse: (context, { value, args, propertyKey }) => {
    const response = context.switchToHttp().getResponse<OrRaw<ServerResponse & OfHttp2>>();
    const raw = response.raw ?? response;
    const tookOver =
      value === undefined &&
      args.some((arg) => arg === response || arg === raw) &&
      Reflect.getMetadata(PASSTHROUGH, context.getClass(), propertyKey) !== true;
    if ((!tookOver && !isStream(value)) || raw.writableEnded) return undefined;
    const request = context.switchToHttp().getRequest<OrRaw<{ readonly socket: Socket }>>();
    return {
      over: overOf(raw, (request.raw ?? request).socket),
      cut: () => {
        sourceOf(value).destroy?.();
        if (raw.stream === undefined) raw.destroy();
        else raw.stream.close(constants.NGHTTP2_CANCEL);
      },
    };
  },

  keepMessages: () => undefined,

  watchClient: (context, gone) => {
    const response = context.switchToHttp().getResponse<OrRaw<ServerResponse & OfHttp2>>();
    const raw = response.raw ?? response;
    const onClose = (): void => {
      // A response of HTTP/2 says that it has finished also when its stream was cancelled.
      if (raw.writableEnded && raw.writableFinished) return;
      gone(clientGone());
    };
    if (raw.destroyed || raw.stream?.destroyed === true) onClose();
    else raw.once('close', onClose);
    return () => {
      raw.off('close', onClose);
    };
  },

  // Events may never end by themselves: the lock would be held indefinitely.
  endsUnsubscribed: isSse,
};

function isSse(host: ArgumentsHost | ExecutionContext): boolean {
  return 'getHandler' in host && Reflect.getMetadata(SSE, host.getHandler()) === true;
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

/** What a response is made from. */
const sourceOf = (value: unknown): { destroy?: () => void } =>
  value instanceof StreamableFile ? value.getStream() : (Object(value) as object);

function isStream(value: unknown): boolean {
  if (value instanceof StreamableFile) return true;
  if (typeof value !== 'object' || value === null) return false;
  if (value instanceof Response) return value.body !== null; // Fastify sends those of the Fetch API
  return Symbol.asyncIterator in value || typeof (value as { pipe?: unknown }).pipe === 'function';
}
