import { Logger, type ArgumentsHost } from '@nestjs/common';
import {
  LockDeadlockError,
  LockNotAcquiredError,
  LockServiceClosedError,
  LockStoreUnavailableError,
  type LockError,
} from '../../errors.js';

const logger = new Logger('Holdfast');

/** Logs what is wrong in the application itself: the client is told nothing of it, and Nest logs no `HttpException`. */
export function reportFault(error: LockError): void {
  if (error.getStatus() === 500 || error instanceof LockDeadlockError) logger.error(error);
}

/** A lock without TTL tells nothing; neither does an outage. */
const UNKNOWN_SECONDS = 1;

/** Whole seconds after which asking again may help, at least 1; `undefined` where asking again is not the answer. */
export function retryAfterSeconds(error: LockError): number | undefined {
  if (error instanceof LockNotAcquiredError) {
    const seconds = Math.ceil(error.retryAfterMs / 1_000);
    return Number.isFinite(seconds) ? Math.max(1, seconds) : UNKNOWN_SECONDS;
  }
  const passes =
    error instanceof LockStoreUnavailableError ||
    error instanceof LockServiceClosedError ||
    // The other one goes on.
    error instanceof LockDeadlockError;
  return passes ? UNKNOWN_SECONDS : undefined;
}

interface Responseish {
  readonly headersSent?: boolean;
  readonly sent?: boolean;
  readonly raw?: { readonly headersSent?: boolean };
  header?(name: string, value: string): unknown;
  setHeader?(name: string, value: string): unknown;
}

/** Sets `Retry-After` on an HTTP response that has not begun. Call it from an exception filter of your own that handles lock errors. */
export function setRetryAfter(error: LockError, host: ArgumentsHost): void {
  const seconds = retryAfterSeconds(error);
  const response = host.switchToHttp().getResponse<Responseish>();
  const sent = response.headersSent ?? response.raw?.headersSent ?? response.sent;
  if (seconds === undefined || sent === true) return;
  // Express has both, Fastify's reply the first, the raw response that its middleware gets the second.
  if (response.header !== undefined) response.header('Retry-After', String(seconds));
  else response.setHeader?.('Retry-After', String(seconds));
}

/** What a call fails with in its transport: over HTTP the error itself, with `Retry-After` set. */
export async function answerFor(error: LockError, host: ArgumentsHost): Promise<Error> {
  switch (host.getType<string>()) {
    case 'http':
      setRetryAfter(error, host);
      return error;
    case 'rpc':
      return convert(error, async () => (await import('@nestjs/microservices')).RpcException);
    case 'ws':
      return convert(error, async () => (await import('@nestjs/websockets')).WsException);
    default:
      return error;
  }
}

/** The packages of other transports are optional, and loaded when a call of theirs has failed. */
async function convert(
  error: LockError,
  load: () => Promise<new (body: object) => Error>,
): Promise<Error> {
  reportFault(error);
  const Exception = await load();
  const converted = new Exception(error.getResponse());
  converted.cause = error;
  return converted;
}
