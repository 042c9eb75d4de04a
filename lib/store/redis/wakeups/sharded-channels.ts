import calculateSlot from 'cluster-key-slot';
import { NotTheMaster, tryPublishing, type Channels, type ChannelsOptions } from './channels.js';
import type { RedisClient } from '../client/redis-client.js';
import { Subscriber } from '../client/subscriber.js';

/** A connection to one master, and the channels that it is subscribed to. */
interface AtMaster {
  readonly subscriber: Subscriber;
  readonly connected: Promise<void>;
  readonly channels: Set<string>;
}

/**
 * On a Cluster: one channel for each slot that was waited in, heard at the master that owns it, by sharded pub/sub. That master then
 * knows whether this process is there. A channel is kept for good: there are no more of them than slots.
 */
export class ShardedChannels implements Channels {
  readonly #uuid: string;
  readonly #options: ChannelsOptions;
  readonly #client: RedisClient;
  readonly #bySlot = new Map<number, string>();
  readonly #adding = new Map<number, Promise<void>>();
  /** By the address of the master. */
  readonly #subscribers = new Map<string, AtMaster>();
  #closed = false;

  constructor(options: ChannelsOptions) {
    this.#options = options;
    this.#uuid = options.scheduler.runtime.uuid();
    this.#client = options.connection.client;
    // To find out whether it works before anybody relies on it.
    const first = this.#channel(this.#uuid);
    this.#bySlot.set(calculateSlot(first), first);
  }

  async open(): Promise<void> {
    await Promise.all([...this.#bySlot].map(([slot, channel]) => this.#subscribe(slot, channel)));
  }

  at(slot: number): string | undefined {
    return this.#bySlot.get(slot);
  }

  add(slot: number, tag: string): Promise<void> {
    if (this.#bySlot.has(slot)) return Promise.resolve();
    const channel = this.#channel(tag);
    const adding =
      this.#adding.get(slot) ??
      this.#subscribe(slot, channel).finally(() => {
        this.#adding.delete(slot);
        this.#bySlot.set(slot, channel);
      });
    this.#adding.set(slot, adding);
    return adding;
  }

  /** Each of them is checked in intervals. */
  check(): Promise<void> {
    return Promise.resolve();
  }

  close(): void {
    this.#closed = true;
    for (const { subscriber } of this.#subscribers.values()) subscriber.close();
    this.#subscribers.clear();
  }

  #channel(tag: string): string {
    return `holdfast:${this.#uuid}:{${tag}}`;
  }

  async #subscribe(slot: number, channel: string): Promise<void> {
    try {
      const address = this.#client.ownerOf(slot);
      if (address === undefined) throw new Error(`no master of slot ${String(slot)} is known yet`);
      const { subscriber, connected, channels } = this.#subscriberAt(address);
      await connected;
      if (channels.has(channel)) return;
      await subscriber.subscribe(channel, 'sharded');
      await tryPublishing(this.#options, channel, 'sharded');
      channels.add(channel);
    } catch (error) {
      this.#lookWhereSlotsAre();
      throw error;
    }
  }

  #subscriberAt(address: string): AtMaster {
    const known = this.#subscribers.get(address);
    if (known !== undefined) return known;
    if (this.#closed) throw new Error('closed');
    const { scheduler, timeLimitMs, onMessage, onGone } = this.#options;
    const channels = new Set<string>();
    const subscriber = new Subscriber((events) => this.#client.openSubscriber(events, address), {
      scheduler,
      timeLimitMs,
      onMessage,
      onGone: () => {
        this.#subscribers.delete(address);
        this.#lookWhereSlotsAre();
        onGone();
      },
      onCheck: () => {
        void this.#check(subscriber, channels);
      },
    });
    const connected = subscriber.connect();
    const atMaster = { subscriber, connected, channels };
    this.#subscribers.set(address, atMaster);
    connected.catch(() => {
      if (this.#subscribers.get(address) === atMaster) this.#subscribers.delete(address);
    });
    return atMaster;
  }

  /** A master that was made a replica may keep its listeners, and its successor does not know of them. */
  async #check(subscriber: Subscriber, channels: ReadonlySet<string>): Promise<void> {
    const [channel] = channels;
    if (channel === undefined) return;
    const trial = tryPublishing(this.#options, channel, 'sharded');
    await trial.catch((error: unknown) => {
      if (error instanceof NotTheMaster) subscriber.end();
    });
  }

  #lookWhereSlotsAre(): void {
    if (!this.#closed) this.#client.refreshSlots();
  }
}
