import type { Scheduler, Task } from '../../../time/scheduler.js';
import { TimeLimit } from '../../../time/time-limit.js';
import type { ChannelKind, SubscriberClient, SubscriberEvents } from './redis-client.js';

/** A connection that only listens does not notice when the network drops it: it is asked this often. */
const PING_MS = 10_000;

const CLOSED = 'the connection closed';

interface SubscriberOptions {
  readonly scheduler: Scheduler;
  /** For each step, in ms: a connection that takes longer is given up. */
  readonly timeLimitMs: number;
  readonly onMessage: (message: string) => void;
  /** Told that it is gone, once, if it was there and was not closed by us. */
  readonly onGone: () => void;
  /** Called each time that the connection is pinged. */
  readonly onCheck?: () => void;
}

/** One connection that only listens. When anything is wrong with it, it ends, and is replaced by another one. */
export class Subscriber {
  readonly #client: SubscriberClient;
  readonly #options: SubscriberOptions;
  #isThere = false;
  #ping: Task | undefined;

  /** @param open makes the connection, which is not connected yet */
  constructor(open: (events: SubscriberEvents) => SubscriberClient, options: SubscriberOptions) {
    this.#options = options;
    this.#client = open({
      onMessage: options.onMessage,
      onError: () => {
        if (this.#isThere) this.end();
      },
      onMoved: () => {
        this.end();
      },
      onEnd: () => {
        this.#ping?.cancel();
        if (!this.#isThere) return;
        this.#isThere = false;
        options.onGone();
      },
    });
  }

  /** Rejects with what went wrong, as `subscribe` does. */
  async connect(): Promise<void> {
    await this.#within(this.#client.connect());
    this.#isThere = this.#client.isReady;
    if (!this.#isThere) throw new Error(CLOSED);
    this.#pingLater();
  }

  #pingLater(): void {
    this.#ping = this.#options.scheduler.schedule(PING_MS, () => {
      this.#pingLater();
      this.#within(this.#client.ping()).catch(() => undefined);
      this.#options.onCheck?.();
    });
  }

  async subscribe(channel: string, kind: ChannelKind): Promise<void> {
    await this.#within(this.#client.subscribe(channel, kind));
    if (!this.#isThere) throw new Error(CLOSED);
  }

  /** The subscriber is of no use any more. */
  end(): void {
    this.#client.disconnect();
  }

  /** Ends it without notifying its owner. */
  close(): void {
    this.#isThere = false;
    this.#ping?.cancel();
    this.#client.disconnect();
  }

  /** What is under way when the time is up fails with the connection. */
  async #within<T>(step: Promise<T>): Promise<T> {
    const limit = new TimeLimit(this.#options.scheduler, this.#options.timeLimitMs);
    limit.onOver = () => {
      this.end();
    };
    try {
      return await step;
    } finally {
      limit.cancel();
    }
  }
}
