import type { ArgumentsHost, ExecutionContext } from '@nestjs/common';
import type { HttpAdapterHost } from '@nestjs/core';
import type { LockError } from '../../errors.js';
import type { RequestValues } from '../../key/index.js';

/** Nest notes here what `@Body()`, `@Args()`, `@Payload()` and their like say of a handler's parameters, on every transport. */
export const PARAMETERS = '__routeArguments__';

/** What a handler has answered. */
export interface HandlerAnswer {
  readonly value: unknown;
  readonly propertyKey: string | symbol;
}

/** A response that is not over with the result of its handler. */
export interface OpenResponse {
  /** Resolves when it is over, or its client has gone. */
  readonly over: Promise<void>;
  /** Ends it so that its client does not take it for whole. */
  readonly cut: () => void;
}

/** What is different from one transport of Nest to another. */
export interface Transport {
  /** The request of a call, in one shape for every transport. Raw: before pipes. */
  requestValues(context: ExecutionContext): RequestValues;

  /** Whether clients of a stream get the `message` of its error, unchanged. */
  readonly streamsMessage: boolean;

  /** What a response reports of an error, whichever filter sends it. */
  announce(error: LockError, host: ArgumentsHost): void;

  /** What a call fails with inside its interceptors, for the filters to answer. */
  failureOf(error: LockError, context: ExecutionContext): LockError | Promise<Error>;

  /**
   * Answers an error for which the application has no filter: as Nest would.
   *
   * @param adapterHost of an application with HTTP
   */
  respond(error: LockError, host: ArgumentsHost, adapterHost?: HttpAdapterHost): unknown;

  /** The response, where the handler's work ends with it and not with its result. `undefined` where the result was the end. */
  openResponse(context: ExecutionContext, answer: HandlerAnswer): OpenResponse | undefined;

  /** Keeps what the client streams until the handler's method subscribes to it: the call may wait for its lock before. */
  keepMessages(context: ExecutionContext): void;

  /**
   * Calls `gone` when the client of a call goes away before its response is finished, also if it has done so already: Nest does not tell
   * handlers that return promises.
   *
   * @returns what stops watching
   */
  watchClient(context: ExecutionContext, gone: (reason: Error) => void): () => void;

  /**
   * Whether unsubscribing from the handler's Observable ends its work, as in a feed. Otherwise the work continues, and
   * keeps the lock.
   */
  endsUnsubscribed(context: ExecutionContext): boolean;

  /** Whether clients get each value of the handler's Observable. Otherwise Nest may wait for one: an empty Observable is no answer. */
  sendsEach(context: ExecutionContext): boolean;
}

/** A transport that we know nothing of: errors stay as they are, and the result is the end of a call. */
export const otherTransport: Transport = {
  requestValues: (context) => context.getArgByIndex<RequestValues>(0),
  streamsMessage: false,
  announce: () => undefined,
  failureOf: (error) => error,
  respond: (error) => {
    throw error;
  },
  openResponse: () => undefined,
  keepMessages: () => undefined,
  watchClient: () => () => undefined,
  // Streams may never end by themselves: the lock would be held indefinitely.
  endsUnsubscribed: () => true,
  sendsEach: () => false,
};
