import type { Redis } from 'ioredis';
import type { ChannelKind, SubscriberClient, SubscriberEvents } from '../redis-client.js';

/** A connection that only listens, with ioredis. */
export class IoredisSubscriber implements SubscriberClient {
  readonly #redis: Redis;

  constructor(redis: Redis, { onMessage, onError, onMoved, onEnd }: SubscriberEvents) {
    this.#redis = redis;
    const hear = (_channel: string, message: string): void => {
      onMessage(message);
    };
    redis.on('message', hear);
    redis.on('smessage', hear);
    // The promise reports why it failed to connect; without a listener ioredis prints it. Later `error` reports a reply
    // without a request: before ioredis 6, this is how a Cluster removes channels whose slot has moved.
    redis.on('error', onError);
    // The same since ioredis 6.
    redis.on('moved', onMoved);
    redis.once('end', onEnd);
  }

  get isReady(): boolean {
    return this.#redis.status === 'ready';
  }

  connect(): Promise<void> {
    return this.#redis.connect();
  }

  async subscribe(channel: string, kind: ChannelKind): Promise<void> {
    await (kind === 'sharded' ? this.#redis.ssubscribe(channel) : this.#redis.subscribe(channel));
  }

  async ping(): Promise<void> {
    await this.#redis.ping();
  }

  disconnect(): void {
    this.#redis.disconnect();
  }
}
