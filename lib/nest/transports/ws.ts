import { Logger, type ArgumentsHost } from '@nestjs/common';
import type { LockError } from '../../errors.js';
import { convert } from './faults.js';
import { otherTransport } from './other.js';
import type { Transport } from './transport.js';

/** The connection of a client, as socket.io has it, or with what a guard has put on it. */
interface Client {
  readonly user?: unknown;
  readonly data?: { readonly user?: unknown };
  readonly handshake?: { readonly headers?: unknown; readonly query?: unknown };
}

const logger = new Logger('Holdfast');

/** Optional, and loaded when a call of theirs has failed. */
const websockets = async () => import('@nestjs/websockets');

/** What a client gets: the body, and which message it answers. */
const answerTo = (error: LockError, host: ArgumentsHost): object => ({
  ...error.reply,
  cause: { pattern: host.switchToWs().getPattern() },
});

/**
 * Who asked socket.io for an acknowledgement would wait for it indefinitely, because Nest acknowledges results only: it gets the answer.
 */
function acknowledge(answer: object, host: ArgumentsHost): void {
  const callback = host.getArgByIndex<string | undefined | ((answer: object) => void)>(2);
  if (typeof callback === 'function') callback(answer);
}

/** Gateways of WebSockets. */
export const wsTransport: Transport = {
  ...otherTransport,

  requestValues: (context) => {
    const client = context.switchToWs().getClient<Client | undefined>();
    return {
      body: context.switchToWs().getData<unknown>(),
      headers: client?.handshake?.headers,
      query: client?.handshake?.query,
      user: client?.user ?? client?.data?.user,
    };
  },

  failureOf: async (error, host) => {
    const answer = answerTo(error, host);
    const exception = await convert(error, answer, async () => (await websockets()).WsException);
    // When a filter asks what to answer: until then an interceptor may try again, or have another answer.
    return Object.assign(exception, {
      getError: () => {
        acknowledge(answer, host);
        return answer;
      },
    });
  },

  // Nest does not wait for it.
  respond: (error, host) =>
    websockets()
      .then(({ BaseWsExceptionFilter, WsException }) => {
        const answer = answerTo(error, host);
        acknowledge(answer, host);
        new BaseWsExceptionFilter().catch(new WsException(answer), host);
      })
      .catch((fault: unknown) => {
        logger.error('A client could not be told of a lock error', fault);
      }),
};
