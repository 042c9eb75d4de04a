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

/**
 * What a client gets: the body, and which message it answers. Who asked socket.io for an acknowledgement would wait for it indefinitely,
 * because Nest acknowledges results only: it gets the same.
 */
function answerTo(error: LockError, host: ArgumentsHost): object {
  const answer = { ...error.reply, cause: { pattern: host.switchToWs().getPattern() } };
  const acknowledge = host.getArgByIndex<string | undefined | ((answer: object) => void)>(2);
  if (typeof acknowledge === 'function') acknowledge(answer);
  return answer;
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

  failureOf: (error, host) =>
    convert(error, answerTo(error, host), async () => (await websockets()).WsException),

  // Nest does not wait for it.
  respond: (error, host) =>
    websockets()
      .then(({ BaseWsExceptionFilter, WsException }) => {
        new BaseWsExceptionFilter().catch(new WsException(answerTo(error, host)), host);
      })
      .catch((fault: unknown) => {
        logger.error('A client could not be told of a lock error', fault);
      }),
};
