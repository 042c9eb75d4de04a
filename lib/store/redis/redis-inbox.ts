import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { isReply, type RedisConnection } from './redis-connection.js';
import type { RedisSource } from './redis-source.js';

const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 1_000;
/** Where it is not allowed: somebody has to change that first. */
const FORBIDDEN_RETRY_MS = 5_000;

/** A connection that only listens does not notice when the network drops it: it is asked this often. */
const PING_MS = 10_000;

/** A message that means nothing, to see whether messages come through. */
const TRIAL = '';

/** As ioredis names an answer that is an error. */
const REPLY_ERROR = { name: 'ReplyError' };

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
  #onDeaf: () => void = () => undefined;
  #subscriber: Redis | undefined;
  #retry: NodeJS.Timeout | undefined;
  #ping: NodeJS.Timeout | undefined;
  #attempt: Promise<boolean> | undefined;
  #hears = false;
  /** The last attempt was answered with a no. */
  #isForbidden = false;
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

  /**
   * Whether messages arrive from now on. Where they do not, it is tried again, now and then.
   *
   * @param onMessage called without a message when they arrive again
   * @param onDeaf called when they arrive no longer
   */
  async open(
    onMessage: (message: string | undefined) => void,
    onDeaf: () => void,
  ): Promise<boolean> {
    this.#onMessage = onMessage;
    this.#onDeaf = onDeaf;
    if (this.#hears) return true;
    clearTimeout(this.#retry);
    const open = await this.#subscribe();
    if (!open) this.#reopen(this.#isForbidden ? FORBIDDEN_RETRY_MS : FIRST_RETRY_MS);
    return open;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#retry);
    clearInterval(this.#ping);
    this.#subscriber?.disconnect();
  }

  /** One attempt at a time. */
  #subscribe(): Promise<boolean> {
    this.#attempt ??= this.#trySubscribing().finally(() => {
      this.#attempt = undefined;
    });
    return this.#attempt;
  }

  async #trySubscribing(): Promise<boolean> {
    if (this.#closed) return false;
    let subscriber: Redis | undefined;
    let open = false;
    // What is still under way then fails, and with it the whole attempt.
    const timeLimit = setTimeout(() => subscriber?.disconnect(), this.#timeLimitMs);
    try {
      subscriber = this.#source.connectSubscriber(this.#connection.client);
      this.#subscriber = subscriber;
      // Why it failed is told by the promises below; without a listener ioredis prints it.
      subscriber.on('error', () => undefined);
      subscriber.once('end', () => {
        if (open) this.#down();
      });
      subscriber.on('message', (_channel: string, message: string) => {
        if (message !== TRIAL) this.#onMessage(message);
      });
      await subscriber.connect();
      await subscriber.subscribe(this.channel);
      await this.#tryPublishing();
      // It may have gone meanwhile, by our own time limit too.
      if (subscriber.status !== 'ready') throw new Error('the connection closed');
      open = true;
      this.#hears = true;
      this.#keepAsking(subscriber);
      return true;
    } catch (error) {
      subscriber?.disconnect();
      this.#subscriber = undefined;
      this.#isForbidden = isReply(error);
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
    if (reply.status === 'unavailable') {
      const [failure] = reply.nodes;
      throw Object.assign(new Error(failure?.message), failure?.kind === 'error' && REPLY_ERROR);
    }
  }

  #keepAsking(subscriber: Redis): void {
    clearInterval(this.#ping);
    this.#ping = setInterval(() => {
      const noAnswer = setTimeout(() => {
        subscriber.disconnect();
      }, this.#timeLimitMs);
      const answered = (): void => {
        clearTimeout(noAnswer);
      };
      subscriber.ping().then(answered, answered);
    }, PING_MS);
  }

  #down(): void {
    this.#hears = false;
    clearInterval(this.#ping);
    if (this.#closed) return;
    this.#onDeaf();
    this.#reopen(FIRST_RETRY_MS);
  }

  #reopen(delayMs: number): void {
    if (this.#closed) return;
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => {
      void this.#subscribe().then((open) => {
        if (open) this.#onMessage(undefined);
        else this.#reopen(Math.max(delayMs, Math.min(delayMs * 2, LONGEST_RETRY_MS)));
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
