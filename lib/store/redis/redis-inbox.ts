import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { RedisConnection } from './redis-connection.js';
import type { RedisSource } from './redis-source.js';

const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 1_000;

/** A message that means nothing, to see whether messages come through. */
const TRIAL = '';

/**
 * The ear of this process: one connection and one channel of its own, however many keys and callers wait. Its name is random, so
 * that applications which share a Redis do not hear each other. Opened at the first wait; a connection that breaks is replaced,
 * and because messages may have been missed meanwhile, everybody is told to look again.
 */
export class RedisInbox {
  readonly channel = `holdfast:${randomUUID()}`;
  readonly #source: RedisSource;
  readonly #connection: RedisConnection;
  readonly #timeLimitMs: number;
  readonly #warn: (message: string) => void;
  #onMessage: (message: string | undefined) => void = () => undefined;
  #subscriber: Redis | undefined;
  #retry: NodeJS.Timeout | undefined;
  #closed = false;
  #complained = false;

  constructor(
    source: RedisSource,
    connection: RedisConnection,
    timeLimitMs: number,
    warn: (message: string) => void,
  ) {
    this.#source = source;
    this.#connection = connection;
    this.#timeLimitMs = timeLimitMs;
    this.#warn = warn;
  }

  /** Whether messages arrive from now on. */
  async open(onMessage: (message: string | undefined) => void): Promise<boolean> {
    this.#onMessage = onMessage;
    return this.#subscribe();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#retry);
    this.#subscriber?.disconnect();
  }

  async #subscribe(): Promise<boolean> {
    if (this.#closed) return false;
    let subscriber: Redis | undefined;
    // What is still under way then fails, and with it the whole attempt.
    const timeLimit = setTimeout(() => subscriber?.disconnect(), this.#timeLimitMs);
    try {
      subscriber = this.#source.connectSubscriber(this.#connection.client);
      this.#subscriber = subscriber;
      // Why it failed is told by the promises below; without a listener ioredis prints it.
      subscriber.on('error', () => undefined);
      subscriber.on('message', (_channel: string, message: string) => {
        if (message !== TRIAL) this.#onMessage(message);
      });
      await subscriber.connect();
      await subscriber.subscribe(this.channel);
      await this.#tryPublishing();
      subscriber.once('end', () => {
        this.#reopen(FIRST_RETRY_MS);
      });
      return true;
    } catch (error) {
      subscriber?.disconnect();
      this.#complain(error);
      return false;
    } finally {
      clearTimeout(timeLimit);
    }
  }

  /** Scripts swallow the error of a PUBLISH that is forbidden, because the release is what matters: it is told here. */
  async #tryPublishing(): Promise<void> {
    const reply = await this.#connection.ask(this.#timeLimitMs, ({ client }) =>
      client.publish(this.channel, TRIAL),
    );
    if (reply.status === 'unavailable') throw new Error(reply.nodes[0]?.message);
  }

  #reopen(delayMs: number): void {
    if (this.#closed) return;
    this.#retry = setTimeout(() => {
      void this.#subscribe().then((open) => {
        if (open) this.#onMessage(undefined);
        else this.#reopen(Math.min(delayMs * 2, LONGEST_RETRY_MS));
      });
    }, delayMs);
  }

  #complain(error: unknown): void {
    if (this.#closed || this.#complained) return;
    this.#complained = true;
    const message = this.#source.redact(error instanceof Error ? error.message : String(error));
    this.#warn(
      `Cannot be told of releases by ${this.#source.name} (${message}). Waiting callers look again every 500 ms until it works: ` +
        `allow SUBSCRIBE, and PUBLISH to "holdfast:*", for the Redis user to have them woken at once.`,
    );
  }
}
