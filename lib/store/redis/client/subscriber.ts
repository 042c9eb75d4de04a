import type { Redis } from 'ioredis';
import type { Scheduler, Task } from '../../../time/scheduler.js';
import { TimeLimit } from '../../../time/time-limit.js';

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
  /** Called as often as it is asked whether it is there. */
  readonly onCheck?: () => void;
}

/** One connection that only listens. When anything is wrong with it, it ends, and is replaced by another one. */
export class Subscriber {
  readonly #redis: Redis;
  readonly #options: SubscriberOptions;
  #isThere = false;
  #ping: Task | undefined;

  constructor(redis: Redis, options: SubscriberOptions) {
    this.#redis = redis;
    this.#options = options;
    const hear = (_channel: string, message: string): void => {
      options.onMessage(message);
    };
    redis.on('message', hear);
    redis.on('smessage', hear);
    // Why it failed to connect is told by the promise; without a listener ioredis prints it. Later on it says that an answer came
    // which nobody had asked for: before ioredis 6, how a Cluster takes channels away whose slot has moved.
    redis.on('error', () => {
      if (this.#isThere) this.end();
    });
    // The same since ioredis 6.
    redis.on('moved', () => {
      this.end();
    });
    redis.once('end', () => {
      this.#ping?.cancel();
      if (!this.#isThere) return;
      this.#isThere = false;
      options.onGone();
    });
  }

  /** Rejects with what went wrong, as `subscribe` does. */
  async connect(): Promise<void> {
    await this.#within(this.#redis.connect());
    this.#isThere = this.#redis.status === 'ready';
    if (!this.#isThere) throw new Error(CLOSED);
    this.#pingLater();
  }

  #pingLater(): void {
    this.#ping = this.#options.scheduler.schedule(PING_MS, () => {
      this.#pingLater();
      this.#within(this.#redis.ping()).catch(() => undefined);
      this.#options.onCheck?.();
    });
  }

  async subscribe(channel: string, kind: 'plain' | 'sharded' = 'plain'): Promise<void> {
    const redis = this.#redis;
    await this.#within(kind === 'sharded' ? redis.ssubscribe(channel) : redis.subscribe(channel));
    if (!this.#isThere) throw new Error(CLOSED);
  }

  /** It is of no use any more. */
  end(): void {
    this.#redis.disconnect();
  }

  /** Ends it, and tells nobody. */
  close(): void {
    this.#isThere = false;
    this.#ping?.cancel();
    this.#redis.disconnect();
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
