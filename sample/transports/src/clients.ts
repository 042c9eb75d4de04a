import { credentials, loadPackageDefinition, status, type ServiceError } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { io } from 'socket.io-client';

/** Asks for the payment of an order, and resolves with what the client sees, as a line of text. */
export type Client = (orderId: string) => Promise<string>;

interface OrdersStub {
  pay(
    order: { readonly id: string },
    callback: (error: ServiceError | null, receipt?: { readonly text: string }) => void,
  ): void;
  close(): void;
}

/** One of each transport. */
export function clientsOf(url: string, grpcUrl: string, protoPath: string): Record<string, Client> {
  return {
    HTTP: async (orderId) => {
      const answer = await fetch(`${url}/orders/${orderId}/pay`, { method: 'POST' });
      const retryAfter = answer.headers.get('Retry-After');
      const hint = retryAfter === null ? '' : ` Retry-After: ${retryAfter}`;
      return `${answer.status}${hint} ${await answer.text()}`;
    },

    GraphQL: async (orderId) => {
      const query = `mutation { pay(id: "${orderId}") }`;
      const answer = await fetch(`${url}/graphql`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ query }),
      });
      const { data, errors } = (await answer.json()) as {
        data?: { pay: string } | null;
        errors?: { message: string; extensions: object }[];
      };
      const [error] = errors ?? [];
      if (error === undefined) return JSON.stringify(data);
      const { message, extensions } = error;
      return JSON.stringify({ message, extensions });
    },

    gRPC: async (orderId) => {
      const { orders } = loadPackageDefinition(loadSync(protoPath)) as unknown as {
        orders: { Orders: new (address: string, secrets: unknown) => OrdersStub };
      };
      const stub = new orders.Orders(grpcUrl, credentials.createInsecure());
      const seen = await new Promise<string>((resolve) => {
        stub.pay({ id: orderId }, (error, receipt) => {
          if (error === null) resolve(`OK ${receipt?.text ?? ''}`);
          else
            resolve(
              `${status[error.code] ?? ''} ${error.details} ${JSON.stringify(error.metadata.getMap())}`,
            );
        });
      });
      stub.close();
      return seen;
    },

    WebSocket: async (orderId) => {
      const socket = io(url, { transports: ['websocket'] });
      const seen: unknown = await socket.emitWithAck('pay', { id: orderId });
      socket.disconnect();
      return JSON.stringify(seen);
    },
  };
}
