import { tryPublishing, type Channels, type ChannelsOptions } from './channels.js';
import { Subscriber } from '../client/subscriber.js';

/** One connection and one channel, however many keys and callers wait. */
export class PlainChannel implements Channels {
  readonly #name: string;
  readonly #options: ChannelsOptions;
  #subscriber: Subscriber | undefined;

  constructor(options: ChannelsOptions) {
    this.#options = options;
    this.#name = `holdfast:${options.scheduler.runtime.uuid()}`;
  }

  async open(): Promise<void> {
    const { client } = this.#options.connection;
    const subscriber = new Subscriber((events) => client.openSubscriber(events), this.#options);
    this.#subscriber = subscriber;
    try {
      await subscriber.connect();
      await subscriber.subscribe(this.#name, 'plain');
      await tryPublishing(this.#options, this.#name);
      if (!(await this.#isListenedTo()))
        throw new Error('it is another server than commands go to');
    } catch (error) {
      subscriber.close();
      throw error;
    }
  }

  get address(): string {
    return `plain ${this.#name}`;
  }

  at(): string {
    return this.#name;
  }

  add(): Promise<void> {
    return Promise.resolve();
  }

  async check(): Promise<void> {
    const subscriber = this.#subscriber;
    if (!(await this.#isListenedTo())) subscriber?.end();
  }

  close(): void {
    this.#subscriber?.close();
  }

  /**
   * Whether the server that scripts run on counts us among its listeners. Where one address leads to another server after a fail-over, our
   * subscriber may stay at the old master: messages come from there, too, but every script takes us for dead.
   */
  async #isListenedTo(): Promise<boolean> {
    const { connection, timeLimitMs } = this.#options;
    // Messages reach all nodes of a Cluster, and none counts the listeners of the others.
    if (connection.client.kind === 'cluster') return true;
    const reply = await connection.look(timeLimitMs, ({ client }) =>
      client.command('pubsub', 'NUMSUB', this.#name),
    );
    // Where this is forbidden, scripts treat all processes as alive.
    const counts = reply.status === 'answered' && Array.isArray(reply.value) ? reply.value : [];
    return counts.length < 2 || Number(counts[1]) > 0;
  }
}
