import calculateSlot from 'cluster-key-slot';
import { NotTheMaster, tryPublishing, type Channels, type ChannelsOptions } from './channels.js';
import type { RedisClient } from '../client/redis-client.js';
import { Subscriber } from '../client/subscriber.js';

/** A connection to one master, and what it listens to. */
interface Ear {
  readonly subscriber: Subscriber;
  readonly connected: Promise<void>;
  readonly hears: Set<string>;
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
  readonly #subscriber = new Map<string, Ear>();
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
    await Promise.all([...this.#bySlot].map(([slot, channel]) => this.#hear(slot, channel)));
  }

  at(slot: number): string | undefined {
    return this.#bySlot.get(slot);
  }

  add(slot: number, tag: string): Promise<void> {
    if (this.#bySlot.has(slot)) return Promise.resolve();
    const channel = this.#channel(tag);
    const adding =
      this.#adding.get(slot) ??
      this.#hear(slot, channel).finally(() => {
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
    for (const { subscriber } of this.#subscriber.values()) subscriber.close();
    this.#subscriber.clear();
  }

  #channel(tag: string): string {
    return `holdfast:${this.#uuid}:{${tag}}`;
  }

  async #hear(slot: number, channel: string): Promise<void> {
    try {
      const address = this.#client.ownerOf(slot);
      if (address === undefined) throw new Error(`no master of slot ${String(slot)} is known yet`);
      const ear = this.#earAt(address);
      await ear.connected;
      if (ear.hears.has(channel)) return;
      await ear.subscriber.subscribe(channel, 'sharded');
      await tryPublishing(this.#options, channel, 'sharded');
      ear.hears.add(channel);
    } catch (error) {
      this.#lookWhereSlotsAre();
      throw error;
    }
  }

  #earAt(address: string): Ear {
    const known = this.#subscriber.get(address);
    if (known !== undefined) return known;
    if (this.#closed) throw new Error('closed');
    const { scheduler, timeLimitMs, onMessage, onGone } = this.#options;
    const hears = new Set<string>();
    const subscriber = new Subscriber((events) => this.#client.openSubscriber(events, address), {
      scheduler,
      timeLimitMs,
      onMessage,
      onGone: () => {
        this.#subscriber.delete(address);
        this.#lookWhereSlotsAre();
        onGone();
      },
      onCheck: () => {
        void this.#check(subscriber, hears);
      },
    });
    const connected = subscriber.connect();
    const ear = { subscriber, connected, hears };
    this.#subscriber.set(address, ear);
    connected.catch(() => {
      if (this.#subscriber.get(address) === ear) this.#subscriber.delete(address);
    });
    return ear;
  }

  /** A master that was made a replica may keep its listeners, and its successor does not know of them. */
  async #check(subscriber: Subscriber, hears: ReadonlySet<string>): Promise<void> {
    const [channel] = hears;
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
