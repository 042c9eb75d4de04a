import type { ChannelKind, SubscriberClient, SubscriberEvents } from '../redis-client.js';
import { CLOSED, isReply } from '../reply-errors.js';
import { connectError, requestError } from './glide-replies.js';
import type { GlideMessage, OwnGlideClient } from './glide-shape.js';

/** Makes a client that passes its messages on. */
export type SubscriberMaker = (
  signal: AbortSignal,
  onMessage: (message: GlideMessage) => void,
) => Promise<OwnGlideClient>;

/** Shorter than the usual `nodeTimeout`, so that the reason is reported. */
const SUBSCRIBED_WITHIN_MS = 800;

/**
 * A client of GLIDE that only listens. GLIDE replaces a connection that broke, and subscribes again: messages may have been missed. The
 * subscription is noticed, and ends this client.
 */
export class GlideSubscriber implements SubscriberClient {
  readonly #create: SubscriberMaker;
  readonly #events: SubscriberEvents;
  #client: OwnGlideClient | undefined;
  readonly #ending = new AbortController();
  #channels = 0;
  #messages = 0;
  /** What GLIDE has said of subscriptions. */
  #notices = 0;

  constructor(create: SubscriberMaker, events: SubscriberEvents) {
    this.#create = create;
    this.#events = events;
  }

  get #isEnded(): boolean {
    return this.#ending.signal.aborted;
  }

  get isReady(): boolean {
    return this.#client !== undefined && !this.#isEnded;
  }

  async connect(): Promise<void> {
    const client = await this.#create(this.#ending.signal, (message) => {
      this.#messages += 1;
      if (!this.#isEnded) this.#events.onMessage(String(message.message));
    }).catch((error: unknown) => {
      throw new Error(connectError(error), { cause: error });
    });
    if (this.#isEnded) {
      client.close();
      throw new Error(CLOSED);
    }
    this.#client = client;
    this.#watch(client);
    client.customCommand(['client', 'setname', 'holdfast']).catch(() => undefined);
  }

  async subscribe(channel: string, kind: ChannelKind): Promise<void> {
    if (kind === 'sharded') throw new Error('has no sharded channels');
    this.#channels += 1;
    try {
      await this.#open().subscribe([channel], SUBSCRIBED_WITHIN_MS);
    } catch (error) {
      if (this.#isEnded) throw new Error(CLOSED, { cause: error });
      // GLIDE tries again until its time is up, and drops the replies.
      throw new Error('no answer to SUBSCRIBE: the Redis user may not be allowed to', {
        cause: error,
      });
    }
  }

  async ping(): Promise<void> {
    try {
      await this.#open().customCommand(['ping']);
    } catch (error) {
      const failure = requestError(error);
      if (!isReply(failure)) this.disconnect();
      throw failure;
    }
  }

  disconnect(): void {
    if (this.#isEnded) return;
    this.#ending.abort();
    this.#client?.close();
    this.#events.onEnd();
  }

  #open(): OwnGlideClient {
    if (this.#client === undefined || this.#isEnded) throw new Error(CLOSED);
    return this.#client;
  }

  /** What is passed on and is no message confirms a subscription, or tells that the connection broke. One belongs to each channel. */
  #watch(client: OwnGlideClient): void {
    const passOn = client.processPush?.bind(client);
    if (passOn === undefined) return;
    client.processPush = (push) => {
      const before = this.#messages;
      passOn(push);
      if (this.#messages > before || this.#isEnded) return;
      this.#notices += 1;
      if (this.#notices > this.#channels) this.disconnect();
    };
  }
}
