import type {
  SubscriberClient,
  SubscriberEvents,
} from '../../../../lib/store/redis/client/redis-client.js';
import { replyError } from '../../../../lib/store/redis/client/reply-errors.js';
import type { Answer, Connection } from './connection.js';
import type { SimSource } from './sim-client.js';

/** Until a try to connect fails that nobody answers. */
export const CONNECT_TIMEOUT_MS = 10_000;

/** Behaves as `IoredisSubscriber` does: a connection that only listens, and is never made again. */
export class SimSubscriber implements SubscriberClient {
  readonly #source: SimSource;
  readonly #events: SubscriberEvents;
  readonly #pending = new Set<(error: Error) => void>();
  #connection: Connection | undefined;
  #isReady = false;
  #hasEnded = false;
  #cancelTimer: () => void = () => undefined;

  constructor(source: SimSource, events: SubscriberEvents) {
    this.#source = source;
    this.#events = events;
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  connect(): Promise<void> {
    const { process, network, name } = this.#source;
    return new Promise((resolve, reject) => {
      this.#pending.add(reject);
      const connection = network.dial(process, name, {
        onOpen: () => {
          connection.request(['ping'], (answer) => {
            this.#cancelTimer();
            this.#pending.delete(reject);
            if ('error' in answer) {
              reject(replyError(answer.error));
              this.disconnect();
              return;
            }
            this.#isReady = true;
            resolve();
          });
        },
        onRefused: () => {
          this.#events.onError();
          this.#end(new Error(`connect ECONNREFUSED ${name}`));
        },
        onClosed: () => {
          this.#end(new Error('Connection is closed.'));
        },
        onMessage: this.#events.onMessage,
      });
      this.#connection = connection;
      this.#cancelTimer = process.runtime.setTimer(() => {
        connection.abandon();
        this.#events.onError();
        this.#end(new Error('connect ETIMEDOUT'));
      }, CONNECT_TIMEOUT_MS);
    });
  }

  async subscribe(channel: string): Promise<void> {
    await this.#request('subscribe', channel);
  }

  async ping(): Promise<void> {
    await this.#request('ping');
  }

  disconnect(): void {
    const connection = this.#connection;
    if (connection === undefined) {
      this.#hasEnded = true;
      return;
    }
    connection.abandon();
    // Its end is reported later, as that of a socket is.
    const { process } = this.#source;
    process.runtime.afterInput(() => {
      this.#end(new Error('Connection is closed.'));
    });
  }

  async #request(name: string, ...args: string[]): Promise<void> {
    const connection = this.#connection;
    if (connection === undefined || !this.#isReady) throw new Error('Connection is closed.');
    const answer = await new Promise<Answer>((resolve, reject) => {
      this.#pending.add(reject);
      connection.request([name, ...args], (reply) => {
        this.#pending.delete(reject);
        resolve(reply);
      });
    });
    if ('error' in answer) throw replyError(answer.error);
  }

  #end(why: Error): void {
    this.#cancelTimer();
    this.#isReady = false;
    this.#connection = undefined;
    for (const reject of this.#pending) reject(why);
    this.#pending.clear();
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#events.onEnd();
  }
}
