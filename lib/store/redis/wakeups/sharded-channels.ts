import calculateSlot from 'cluster-key-slot';
import { NotTheMaster, tryPublishing, type Channels, type ChannelsOptions } from './channels.js';
import type { RedisClient } from '../client/redis-client.js';
import { Subscriber } from '../client/subscriber.js';

/** A connection to one master. */
interface AtMaster {
  readonly subscriber: Subscriber;
  readonly connected: Promise<void>;
  /** Whose channels it is subscribed to. */
  readonly slots: Set<number>;
}

/**
 * On a Cluster: one channel for each slot in which callers have waited, subscribed at the master that owns the slot, by
 * sharded pub/sub. So that master knows whether this process is alive. A channel is kept permanently: there are no more
 * of them than slots.
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
    // To find out whether it works before a caller relies on it.
    const first = this.#channel(this.#uuid);
    this.#bySlot.set(calculateSlot(first), first);
  }

  async open(): Promise<void> {
    await Promise.all([...this.#bySlot].map(([slot, channel]) => this.#subscribe(slot, channel)));
  }

  get address(): string {
    return `sharded ${this.#channel(this.#uuid)}`;
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

  /**
   * A master that died, and is back, acts as the master until it detects its successor: it counts who is subscribed
   * there. A message reaches a channel only at the node to which commands for its slot go.
   */
  check(): Promise<void> {
    for (const [address, { subscriber, slots }] of this.#subscribers)
      if (Array.from(slots).some((slot) => this.#isElsewhere(slot, address))) subscriber.end();
    return Promise.resolve();
  }

  #isElsewhere(slot: number, address: string): boolean {
    const owner = this.#client.ownerOf(slot);
    return owner !== undefined && owner !== address;
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
      const { subscriber, connected, slots } = this.#subscriberAt(address);
      await connected;
      if (slots.has(slot)) return;
      await subscriber.subscribe(channel, 'sharded');
      await tryPublishing(this.#options, channel, 'sharded');
      if (this.#isElsewhere(slot, address)) throw new NotTheMaster();
      slots.add(slot);
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
    const slots = new Set<number>();
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
        void this.#checkListeners(subscriber, slots);
      },
    });
    const connected = subscriber.connect();
    const atMaster = { subscriber, connected, slots };
    this.#subscribers.set(address, atMaster);
    connected.catch(() => {
      if (this.#subscribers.get(address) === atMaster) this.#subscribers.delete(address);
    });
    return atMaster;
  }

  /** A master that was made a replica may keep its listeners, and its successor does not know of them. */
  async #checkListeners(subscriber: Subscriber, [slot]: Iterable<number>): Promise<void> {
    const channel = slot === undefined ? undefined : this.#bySlot.get(slot);
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
