import type { ServerResponse } from 'node:http';
import { constants } from 'node:http2';
import type { Socket } from 'node:net';
import { finished, isReadable, type Readable } from 'node:stream';
import { StreamableFile, type ArgumentsHost, type ExecutionContext } from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';
import { LockLostError, type LockError } from '../../errors.js';
import type { RequestValues } from '../../key/index.js';
import { clientGone } from './faults.js';
import { PARAMETERS, type Transport } from './transport.js';

/** Express' objects are Node's own, Fastify's have them as `raw`. */
type OrRaw<T> = T & { readonly raw?: T };

/** What a response of HTTP/2 has in addition: it has no `destroyed`. */
interface OfHttp2 {
  readonly stream?: { readonly destroyed: boolean; close(code: number): void };
}

type RawResponse = ServerResponse & OfHttp2;

/** What `@Sse` notes on a handler. */
const SSE = '__sse__';

/** How Nest numbers `@Res()` and `@Next()` among the parameters of a handler. */
const RES_AND_NEXT: readonly unknown[] = ['1', '2'];

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

  announce: (error, host) => {
    setRetryAfter(error, host);
    // Nest would end a body that has begun, as if it were whole. It sends the error of events as one of them.
    if (!(error instanceof LockLostError) || isSse(host)) return;
    const raw = rawOf(host);
    if (raw.headersSent && !raw.writableEnded) cutOff(raw);
  },

  failureOf: (error, context) => {
    // Nest sends the message as an event.
    if (isSse(context)) error.addressClient();
    return error;
  },

  respond: (error, host, adapterHost) => {
    // A testing module gets its adapter after its providers.
    new BaseExceptionFilter(adapterHost?.httpAdapter).catch(error, host);
  },

  // The handler answered with a stream (Express' response is one, Fastify's is a promise of its end). Or it took
  // over the response (`@Res()`) and has not ended it yet.
  openResponse: (context, { value, propertyKey }) => {
    const raw = rawOf(context);
    const tookOver = takesOver(context.getClass(), propertyKey);
    if ((!tookOver && !isStream(value)) || raw.writableEnded) return undefined;
    const request = context.switchToHttp().getRequest<OrRaw<{ readonly socket: Socket }>>();
    return {
      over: overOf(raw, (request.raw ?? request).socket),
      cut: () => {
        destroySource(value);
        cutOff(raw);
      },
    };
  },

  keepMessages: () => undefined,

  watchClient: (context, gone) => {
    const raw = rawOf(context);
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

  sendsEach: isSse,
};

function isSse(host: ArgumentsHost | ExecutionContext): boolean {
  // The host of a filter has no handler: it is `null`.
  return (
    'getHandler' in host && Reflect.getMetadata(SSE, Object(host.getHandler()) as object) === true
  );
}

/** Whether the handler sends the response: Nest ignores its result. */
export function takesOver(owner: object, propertyKey: string | symbol): boolean {
  const noted = (Reflect.getMetadata(PARAMETERS, owner, propertyKey) ?? {}) as object;
  return (
    Object.keys(noted).some((key) => RES_AND_NEXT.includes(key.split(':')[0])) &&
    Reflect.getMetadata(PASSTHROUGH, owner, propertyKey) !== true
  );
}

function rawOf(host: ArgumentsHost): RawResponse {
  const response = host.switchToHttp().getResponse<OrRaw<RawResponse>>();
  return response.raw ?? response;
}

/** Ends a response so that its client does not take it for whole. */
function cutOff(response: RawResponse): void {
  if (response.stream === undefined) response.destroy();
  else response.stream.close(constants.NGHTTP2_CANCEL);
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

/** Closes what a response would be made from. Other objects have a `destroy`, too: that of a row deletes it. */
export function destroySource(value: unknown): void {
  const source = value instanceof StreamableFile ? value.getStream() : (value as Readable);
  // What a web stream reads from is closed by its reader.
  if (isReadable(source)) (source as Partial<Readable>).destroy?.();
}

function isStream(value: unknown): boolean {
  if (value instanceof StreamableFile) return true;
  if (typeof value !== 'object' || value === null) return false;
  if (value instanceof Response) return value.body !== null; // Fastify sends those of the Fetch API
  return Symbol.asyncIterator in value || typeof (value as { pipe?: unknown }).pipe === 'function';
}
