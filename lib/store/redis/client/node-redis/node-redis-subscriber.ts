import type { ChannelKind, SubscriberClient, SubscriberEvents } from '../redis-client.js';
import { CLOSED } from '../reply-errors.js';
import { NodeConnection, type Opener } from './node-connection.js';

/** A connection that only listens, with node-redis. */
export class NodeRedisSubscriber implements SubscriberClient {
  readonly #open: Opener;
  readonly #events: SubscriberEvents;
  #connection: NodeConnection | undefined;

  constructor(open: Opener, events: SubscriberEvents) {
    this.#open = open;
    this.#events = events;
  }

  get isReady(): boolean {
    return this.#connection?.isReady === true;
  }

  connect(): Promise<void> {
    return new Promise((resolve, reject) => {
      const open: Opener = async (socket) => {
        const client = await this.#open(socket);
        // node-redis 6, and 5.
        client.on('sharded-channel-moved', this.#events.onMoved);
        client.on('server-sunsubscribe', this.#events.onMoved);
        return client;
      };
      this.#connection = new NodeConnection(open, {
        onReady: resolve,
        onEnd: (problem) => {
          reject(problem ?? new Error(CLOSED));
          this.#events.onEnd();
        },
      });
    });
  }

  async subscribe(channel: string, kind: ChannelKind): Promise<void> {
    await this.#connection?.ask((client) =>
      kind === 'sharded'
        ? client.sSubscribe(channel, this.#events.onMessage)
        : client.subscribe(channel, this.#events.onMessage),
    );
  }

  async ping(): Promise<void> {
    await this.#connection?.send(['ping']);
  }

  disconnect(): void {
    this.#connection?.end();
  }
}
