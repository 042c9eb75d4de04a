import type { ArgumentsHost, ExecutionContext } from '@nestjs/common';
import { throwError, isObservable, Observable, ReplaySubject, Subject } from 'rxjs';
import type { LockError } from '../../errors.js';
import { clientGone, rpcException } from './faults.js';
import { rpcTransport } from './rpc.js';
import type { Transport } from './transport.js';
import { systemRuntime } from '../../time/runtime.js';

interface Metadata {
  set(name: string, value: string): void;
}

/** A call as `@grpc/grpc-js` gives it to handlers, behind the request and its metadata. */
interface Call {
  readonly cancelled: boolean;
  readonly metadata: Metadata;
  getPeer(): string;
  /** Only calls whose response is a stream have it. */
  write?(message: unknown): boolean;
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
  // The class of the application's own `@grpc/grpc-js`, which Nest loads where it is asked for.
  const metadata = new (callOf(host).metadata.constructor as new () => Metadata)();
  metadata.set('lock-error-code', error.code);
  if (retryAfterMs !== undefined) metadata.set('retry-after-ms', String(retryAfterMs));
  const other = statusCode < 500 ? FAILED_PRECONDITION : INTERNAL;
  return { code: CODES[statusCode] ?? other, message, details: message, metadata };
}

/** Microservices over gRPC: a status, and metadata for programs. */
export const grpcTransport: Transport = {
  ...rpcTransport,

  failureOf: (error, context) => rpcException(error, statusOf(error, context)),

  respond: (error, host) => throwError(() => statusOf(error, host)),

  keepMessages,

  sendsEach: (context) => callOf(context).write !== undefined,

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

/** As Nest gives it to handlers: with what makes it pass on the messages that came before. */
type Messages = Observable<unknown> & { readonly drainBuffer?: () => void };

/** The streams that handlers get. */
const kept = new WeakSet<object>();

/**
 * Replaces the stream of a client in the arguments of its call by one that keeps the messages until the first subscriber.
 *
 * Nest passes them on as soon as the handler has returned its Observable, and the method has not been called by then if
 * the call still asks for its lock. Nest 11 also forgets them if the stream ends before.
 */
function keepMessages(context: ExecutionContext): void {
  const args = context.getArgs<[unknown]>();
  const [source] = args;
  // An interceptor may call again (`retry()`).
  if (!isObservable(source) || kept.has(source)) return;
  args[0] = keep(source);
  kept.add(args[0] as object);
}

function keep(source: Messages): Observable<unknown> {
  const [past, messages] = [new ReplaySubject<unknown>(), new Subject<unknown>()];
  source.drainBuffer?.();
  const keeping = source.subscribe(past);
  const passOn = (): void => {
    keeping.unsubscribe();
    past.subscribe(messages).unsubscribe();
    source.subscribe(messages);
  };
  let isHeard = false;
  return new Observable((subscriber) => {
    // As Nest does it: all that the method has subscribed by then get the messages.
    if (!isHeard) systemRuntime.afterInput(passOn);
    isHeard = true;
    return messages.subscribe(subscriber);
  });
}
