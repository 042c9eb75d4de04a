import { Logger, type ArgumentsHost } from '@nestjs/common';
import type { LockError } from '../../errors.js';
import { convert } from './faults.js';
import { otherTransport, type Transport } from './transport.js';

/** The connection of a client, as socket.io has it, or with what a guard has put on it. */
interface Client {
  readonly user?: unknown;
  readonly data?: { readonly user?: unknown };
  readonly handshake?: { readonly headers?: unknown; readonly query?: unknown };
}

const logger = new Logger('Holdfast');

/** Optional, and loaded when a call of theirs has failed. */
const websockets = async () => import('@nestjs/websockets');

/** A connection of `ws`, whose `emit` reaches only this process. */
interface NativeClient {
  readonly readyState: number;
  send(text: string): void;
}

const isNative = (client: unknown): client is NativeClient =>
  typeof client === 'object' && client !== null && 'readyState' in client && 'send' in client;

/** The client, where Nest's filter would not reach it: before Nest 12 it emits to connections of `ws`, too. */
async function unreached(host: ArgumentsHost): Promise<NativeClient | undefined> {
  const client = host.switchToWs().getClient<unknown>();
  if (!isNative(client)) return undefined;
  const { BaseWsExceptionFilter } = await websockets();
  return 'isNativeWebSocket' in BaseWsExceptionFilter.prototype ? undefined : client;
}

/** What a client gets: the body, and which message it answers. */
const answerTo = (error: LockError, host: ArgumentsHost): object => ({
  ...error.reply,
  cause: { pattern: host.switchToWs().getPattern() },
});

/**
 * A client that asked socket.io for an acknowledgement would wait for it indefinitely, because Nest acknowledges results only. It gets the
 * answer.
 */
function acknowledge(answer: object, host: ArgumentsHost): void {
  const callback = host.getArgByIndex<string | undefined | ((answer: object) => void)>(2);
  if (typeof callback === 'function') callback(answer);
}

/** Tells the client. Nest does not wait for it. */
const answerSocket = (error: LockError, host: ArgumentsHost): Promise<void> =>
  Promise.all([websockets(), unreached(host)])
    .then(([{ BaseWsExceptionFilter, WsException }, client]) => {
      const answer = answerTo(error, host);
      acknowledge(answer, host);
      if (client === undefined) new BaseWsExceptionFilter().catch(new WsException(answer), host);
      else client.send(JSON.stringify({ event: 'exception', data: answer }));
    })
    .catch((fault: unknown) => {
      logger.error('A client could not be notified of a lock error', fault);
    });

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

  failureOf: async (error, context) => {
    // For `LockErrorFilter`, or the log: no client would receive a WsException.
    if ((await unreached(context)) !== undefined) return error;
    const answer = answerTo(error, context);
    const exception = await convert(error, answer, async () => (await websockets()).WsException);
    // When a filter asks what to answer: until then an interceptor may try again, or have another answer.
    return Object.assign(exception, {
      getError: () => {
        acknowledge(answer, context);
        return answer;
      },
    });
  },

  respond: answerSocket,
};
