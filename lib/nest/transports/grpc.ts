import type { ArgumentsHost } from '@nestjs/common';
import { throwError } from 'rxjs';
import type { LockError } from '../../errors.js';
import { clientGone } from './client-gone.js';
import { rpcException } from './faults.js';
import { keepMessages } from './grpc-messages.js';
import { otherTransport } from './other.js';
import type { Transport } from './transport.js';

interface Metadata {
  set(name: string, value: string): void;
}

/** A call as `@grpc/grpc-js` gives it to handlers, behind the request and its metadata. */
interface Call {
  readonly cancelled: boolean;
  readonly metadata: Metadata;
  getPeer(): string;
  once(event: 'cancelled', listener: () => void): void;
  off(event: 'cancelled', listener: () => void): void;
}

const callOf = (host: ArgumentsHost): Call => host.getArgByIndex<Call>(2);

export const isGrpc = (host: ArgumentsHost): boolean =>
  typeof (host.getArgByIndex<Partial<Call> | undefined>(2)?.getPeer as unknown) === 'function';

/** What the status of HTTP is called, by https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto */
const CODES: Readonly<Record<number, number>> = {
  400: 3, // INVALID_ARGUMENT
  401: 16, // UNAUTHENTICATED
  403: 7, // PERMISSION_DENIED
  404: 5, // NOT_FOUND
  409: 10, // ABORTED
  412: 9, // FAILED_PRECONDITION
  429: 8, // RESOURCE_EXHAUSTED
  503: 14, // UNAVAILABLE
  504: 4, // DEADLINE_EXCEEDED
};
const [INTERNAL, FAILED_PRECONDITION] = [13, 9];

/** What `@grpc/grpc-js` answers with. */
function statusOf(error: LockError, host: ArgumentsHost): object {
  const { statusCode, message, retryAfterMs } = error.reply;
  // Of the application's own `@grpc/grpc-js`, which Nest loads where it is asked for.
  const metadata = new (callOf(host).metadata.constructor as new () => Metadata)();
  metadata.set('lock-error-code', error.code);
  if (retryAfterMs !== undefined) metadata.set('retry-after-ms', String(retryAfterMs));
  const other = statusCode < 500 ? FAILED_PRECONDITION : INTERNAL;
  return { code: CODES[statusCode] ?? other, message, details: message, metadata };
}

/** Microservices over gRPC: a status, and metadata for programs. */
export const grpcTransport: Transport = {
  ...otherTransport,

  requestValues: (context) => ({ body: context.switchToRpc().getData<unknown>() }),

  failureOf: (error, host) => rpcException(error, statusOf(error, host)),

  respond: (error, host) => throwError(() => statusOf(error, host)),

  keepMessages,

  // Cancelled by the client, or its deadline is over.
  watchClient: (context, gone) => {
    const call = callOf(context);
    const onCancelled = (): void => {
      gone(clientGone());
    };
    if (call.cancelled) onCancelled();
    else call.once('cancelled', onCancelled);
    return () => {
      call.off('cancelled', onCancelled);
    };
  },
};
