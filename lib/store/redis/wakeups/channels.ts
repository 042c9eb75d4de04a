import calculateSlot from 'cluster-key-slot';
import type { Scheduler } from '../../../time/scheduler.js';
import type { ChannelKind, RedisClient, RedisSource } from '../client/redis-client.js';
import type { RedisConnection } from '../client/redis-connection.js';
import { replyError } from '../client/reply-errors.js';
import { Subscriber } from '../client/subscriber.js';

export interface ChannelsOptions {
  readonly source: RedisSource;
  readonly connection: RedisConnection;
  readonly scheduler: Scheduler;
  /** For each step. */
  readonly timeLimitMs: number;
  readonly onMessage: (message: string) => void;
  /** Told that one of them is heard no longer. */
  readonly onGone: () => void;
}

/** A message that means nothing, to see whether messages come through. */
export const TRIAL = '';

/** A replica or an old master lets us listen, too, but its master does not know. */
export class NotTheMaster extends Error {
  constructor() {
    super('it is another server than commands go to');
  }
}

/** A connection that listens. */
interface Listening {
  readonly subscriber: Subscriber;
  readonly connected: Promise<void>;
  /** Whose channels it is subscribed to. */
  readonly slots: Set<number>;
}

/**
 * The channels on which a process is called. Plain: one channel and one connection, however many keys and callers wait. Sharded, on a
 * Cluster: one channel for each slot in which callers have waited, subscribed at the master that owns the slot. So that master knows
 * whether this process is alive. A channel is kept permanently: there are no more of them than slots.
 */
export class Channels {
  readonly #kind: ChannelKind;
  readonly #options: ChannelsOptions;
  readonly #client: RedisClient;
  readonly #uuid: string;
  /** The plain one is that of slot 0. */
  readonly #bySlot = new Map<number, string>();
  readonly #adding = new Map<number, Promise<void>>();
  /** By the address of the master; `undefined` where there is only one. */
  readonly #listening = new Map<string | undefined, Listening>();
  #closed = false;

  constructor(kind: ChannelKind, options: ChannelsOptions) {
    this.#kind = kind;
    this.#options = options;
    this.#uuid = options.scheduler.runtime.uuid();
    this.#client = options.connection.client;
    // A sharded one, too, to find out whether it works before a caller relies on it.
    const first = this.#channel(this.#uuid);
    this.#bySlot.set(this.#slot(calculateSlot(first)), first);
  }

  /** The kind of the first of them, and its name. */
  get address(): string {
    return `${this.#kind} ${this.#channel(this.#uuid)}`;
  }

  /** Subscribes to all of them that are not subscribed to. Rejects with why it could not. */
  async open(): Promise<void> {
    await Promise.all([...this.#bySlot].map(([slot, channel]) => this.#subscribe(slot, channel)));
  }

  /** On which calls for keys of a slot come; `undefined` where it does not listen to those yet. */
  at(slot: number): string | undefined {
    return this.#bySlot.get(this.#slot(slot));
  }

  /**
   * Also subscribes to calls for keys of a slot. When this has settled, the slot has a channel, permanently. Rejects
   * while the subscription does not stand yet.
   *
   * @param tag a hash tag that falls into the slot
   */
  add(slot: number, tag: string): Promise<void> {
    if (this.at(slot) !== undefined) return Promise.resolve();
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

  /** Commands may go to another server than before: `onGone` is called where that does not know who listens. Never rejects. */
  async check(): Promise<void> {
    for (const [address, { subscriber, slots }] of [...this.#listening])
      if (await this.#isElsewhere(address, slots)) subscriber.end();
  }

  close(): void {
    this.#closed = true;
    for (const { subscriber } of this.#listening.values()) subscriber.close();
    this.#listening.clear();
  }

  #slot(slot: number): number {
    return this.#kind === 'sharded' ? slot : 0;
  }

  #channel(tag: string): string {
    return `holdfast:${this.#uuid}${this.#kind === 'sharded' ? `:{${tag}}` : ''}`;
  }

  async #subscribe(slot: number, channel: string): Promise<void> {
    let address: string | undefined;
    try {
      if (this.#kind === 'sharded') {
        address = this.#client.ownerOf(slot);
        if (address === undefined)
          throw new Error(`no master of slot ${String(slot)} is known yet`);
      }
      const { subscriber, connected, slots } = this.#listeningAt(address);
      await connected;
      if (slots.has(slot)) return;
      await subscriber.subscribe(channel, this.#kind);
      await this.#tryPublishing(channel);
      if (await this.#isElsewhere(address, [slot])) throw new NotTheMaster();
      slots.add(slot);
    } catch (error) {
      this.#lookWhereSlotsAre();
      if (this.#kind === 'plain') this.#giveUp(address);
      throw error;
    }
  }

  /** The next attempt may lead to another server. */
  #giveUp(address: string | undefined): void {
    this.#listening.get(address)?.subscriber.close();
    this.#listening.delete(address);
  }

  #listeningAt(address: string | undefined): Listening {
    const known = this.#listening.get(address);
    if (known !== undefined) return known;
    if (this.#closed) throw new Error('closed');
    const slots = new Set<number>();
    const subscriber = new Subscriber((events) => this.#client.openSubscriber(events, address), {
      ...this.#options,
      onGone: () => {
        this.#listening.delete(address);
        this.#lookWhereSlotsAre();
        this.#options.onGone();
      },
      onCheck: () => {
        void this.#checkListeners(subscriber, slots);
      },
    });
    const connected = subscriber.connect();
    const listening = { subscriber, connected, slots };
    this.#listening.set(address, listening);
    connected.catch(() => {
      if (this.#listening.get(address) === listening) this.#listening.delete(address);
    });
    return listening;
  }

  /** Scripts ignore the error of a message that is forbidden, because the release matters more. This trial reports it. */
  async #tryPublishing(channel: string): Promise<void> {
    const { connection, timeLimitMs } = this.#options;
    const command = this.#kind === 'sharded' ? 'spublish' : 'publish';
    const reply = await connection.look(timeLimitMs, ({ client }) =>
      client.command(command, channel, TRIAL),
    );
    if (reply.status === 'unavailable') {
      const [failure] = reply.nodes;
      const message = failure?.message ?? '';
      throw failure?.kind === 'error' ? replyError(message) : new Error(message);
    }
    if (this.#kind === 'sharded' && reply.value === 0) throw new NotTheMaster();
  }

  /**
   * Whether commands go to another server than the one that has our connection. A master that died, and is back, acts as the master until
   * it detects its successor: it counts who is subscribed there. Where one address leads to another server after a fail-over, our
   * connection may stay at the old master: messages come from there, too, but every script takes us for dead.
   */
  async #isElsewhere(address: string | undefined, slots: Iterable<number>): Promise<boolean> {
    if (address !== undefined)
      return [...slots].some((slot) => (this.#client.ownerOf(slot) ?? address) !== address);
    // Messages reach all nodes of a Cluster, and none counts the listeners of the others.
    if (this.#client.kind === 'cluster') return false;
    const { connection, timeLimitMs } = this.#options;
    const reply = await connection.look(timeLimitMs, ({ client }) =>
      client.command('pubsub', 'NUMSUB', this.#channel('')),
    );
    // Where this is forbidden, scripts treat all processes as alive.
    const counts = reply.status === 'answered' && Array.isArray(reply.value) ? reply.value : [];
    return counts.length >= 2 && !(Number(counts[1]) > 0);
  }

  /** A master that was made a replica may keep its listeners, and its successor does not know of them. */
  async #checkListeners(subscriber: Subscriber, [slot]: Iterable<number>): Promise<void> {
    const channel = slot === undefined ? undefined : this.#bySlot.get(slot);
    if (channel === undefined || this.#kind === 'plain') return;
    await this.#tryPublishing(channel).catch((error: unknown) => {
      if (error instanceof NotTheMaster) subscriber.end();
    });
  }

  #lookWhereSlotsAre(): void {
    if (!this.#closed && this.#kind === 'sharded') this.#client.refreshSlots();
  }
}
