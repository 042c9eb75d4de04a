import { randomUUID } from 'node:crypto';
import { tryPublishing, type Channels, type ChannelsOptions } from './channels.js';
import { Subscriber } from './subscriber.js';

/** One connection and one channel, however many keys and callers wait. */
export class PlainChannel implements Channels {
  readonly #name = `holdfast:${randomUUID()}`;
  readonly #options: ChannelsOptions;
  #subscriber: Subscriber | undefined;

  constructor(options: ChannelsOptions) {
    this.#options = options;
  }

  async open(): Promise<void> {
    const { source, connection } = this.#options;
    const subscriber = new Subscriber(source.connectSubscriber(connection.client), this.#options);
    this.#subscriber = subscriber;
    try {
      await subscriber.connect();
      await subscriber.subscribe(this.#name);
      await tryPublishing(this.#options, this.#name);
    } catch (error) {
      subscriber.close();
      throw error;
    }
  }

  at(): string {
    return this.#name;
  }

  add(): Promise<void> {
    return Promise.resolve();
  }

  close(): void {
    this.#subscriber?.close();
  }
}
