import { convert } from './faults.js';
import { otherTransport } from './other.js';
import type { Transport } from './transport.js';

/** The connection of a client, as socket.io has it, or with what a guard has put on it. */
interface Client {
  readonly user?: unknown;
  readonly data?: { readonly user?: unknown };
  readonly handshake?: { readonly headers?: unknown; readonly query?: unknown };
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

  failureOf: (error) =>
    convert(error, error.reply, async () => (await import('@nestjs/websockets')).WsException),
};
