import { backOffMs, type BackOff } from '../../../time/back-off.js';
import type { Task } from '../../../time/scheduler.js';
import { Channels, TRIAL, type ChannelsOptions } from './channels.js';
import type { ChannelKind, RedisSource } from '../client/redis-client.js';
import { isRefusal } from '../client/reply-errors.js';

const RETRY: BackOff = { firstMs: 50, longestMs: 1_000 };

/** So often in a row it fails while commands are answered before that is logged: a connection that broke is mostly back at once. */
const QUIET_FAILURES = 5;

/** The pause where it is forbidden: an operator has to change that first. */
const FORBIDDEN_RETRY: BackOff = { firstMs: 5_000, longestMs: 5_000 };

interface InboxOptions extends Omit<ChannelsOptions, 'onMessage' | 'onGone'> {
  /** Told what the operator should know. */
  readonly warn: (message: string) => void;
  /** Sharded channels belong to slots of a Cluster: they are taken where it allows that. */
  readonly kind: ChannelKind;
}

/**
 * Where this process is called: on channels of its own, for all keys and callers. Their names are random, so that
 * applications which share a Redis do not receive each other's calls. It is opened at the first wait. A connection that
 * breaks is replaced. Messages may have been missed meanwhile, so all lines then ask the store again.
 */
export class RedisInbox {
  readonly #source: RedisSource;
  readonly #warn: (message: string) => void;
  readonly #options: ChannelsOptions;
  #channels: Channels;
  /** On a Cluster, as long as it is not known whether that is possible there. */
  #isTryingSharded: boolean;
  #onMessage: (message: string | undefined) => void = () => undefined;
  #onDeaf: () => void = () => undefined;
  #retry: Task | undefined;
  #attempt: Promise<boolean> | undefined;
  #isSubscribed = false;
  #isWanted = false;
  /** How often something that was heard was heard no longer. */
  #losses = 0;
  /** What became of the last attempt. */
  #last: 'open' | 'failed' | 'forbidden' | undefined;
  #closed = false;
  /** Attempts in a row that failed. */
  #failures = 0;
  /** The log says that nothing is heard, and not yet that it is again. */
  #hasComplained = false;

  constructor({ warn, kind, ...options }: InboxOptions) {
    this.#source = options.source;
    this.#warn = warn;
    this.#options = {
      ...options,
      onMessage: (message) => {
        if (message !== TRIAL) this.#onMessage(message);
      },
      onGone: () => {
        this.#lost();
      },
    };
    this.#isTryingSharded = kind === 'sharded';
    this.#channels = new Channels(kind, this.#options);
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
    this.#isWanted = true;
    if (this.#isSubscribed) return true;
    this.#retry?.cancel();
    const open = await this.#subscribe();
    if (!open) this.#reopen(this.#last === 'forbidden' ? FORBIDDEN_RETRY : RETRY);
    return open;
  }

  /** Where any message reaches this process as soon as it is subscribed: the kind of channel, and its name. */
  get address(): string {
    return this.#channels.address;
  }

  get isSubscribed(): boolean {
    return this.#isSubscribed;
  }

  /** Whether messages arrive, or will as soon as the connection is back. */
  get isReachable(): boolean {
    return this.#last === 'open' || this.#last === 'failed';
  }

  /** Messages are asked for, and do not arrive. */
  get isDeaf(): boolean {
    return this.#isWanted && !this.#isSubscribed;
  }

  /** On which calls for keys of a slot come, once and for all; `undefined` where `listenAt` has to be called first. */
  channelAt(slot: number): string | undefined {
    return this.#channels.at(slot);
  }

  /** Listens to calls for keys of that slot, too. What cannot be heard is tried again, and `onDeaf` called. */
  async listenAt(slot: number, tag: string): Promise<void> {
    try {
      await this.#channels.add(slot, tag);
    } catch (error) {
      if (isRefusal(error)) this.#complainOfRefusal(error);
      this.#lost();
    }
  }

  /** Commands may go to another server than before. */
  check(): void {
    if (this.#isSubscribed) void this.#channels.check();
  }

  close(): void {
    this.#closed = true;
    this.#retry?.cancel();
    this.#channels.close();
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
    const losses = this.#losses;
    try {
      await this.#channels.open();
      // The connection may have gone meanwhile, by our own time limit too.
      if (this.#losses > losses) throw new Error('the connection closed');
      this.#isTryingSharded = false;
      this.#last = 'open';
      this.#isSubscribed = true;
      this.#isHeardAgain();
      return true;
    } catch (error) {
      this.#last = isRefusal(error) ? 'forbidden' : 'failed';
      if (this.#last === 'forbidden' && this.#isTryingSharded) return this.#makeDoWithPlain(error);
      void this.#failed(error);
      return false;
    }
  }

  /** Redis before 7, or a user who must not. */
  async #makeDoWithPlain(why: unknown): Promise<boolean> {
    this.#isTryingSharded = false;
    this.#channels.close();
    this.#channels = new Channels('plain', this.#options);
    const open = await this.#trySubscribing();
    const message = this.#textOf(why);
    if (open && message.includes('NOPERM')) {
      this.#warn(
        `No sharded pub/sub at ${this.#source.name} (${message}). A process that dies while it waits keeps a lock from the next one for ` +
          'up to 1 s. To have it skipped at once, allow SSUBSCRIBE, SPUBLISH and PUBSUB|SHARDNUMSUB for the Redis user.',
      );
    }
    return open;
  }

  #lost(): void {
    this.#losses += 1;
    // Else an attempt is on its way, or planned.
    if (this.#closed || !this.#isSubscribed) return;
    this.#isSubscribed = false;
    this.#onDeaf();
    this.#reopen(RETRY);
  }

  #reopen(retry: BackOff, failures = 0): void {
    if (this.#closed) return;
    this.#retry?.cancel();
    this.#retry = this.#options.scheduler.schedule(backOffMs(retry, failures), () => {
      void this.#subscribe().then((open) => {
        if (open) this.#onMessage(undefined);
        else this.#reopen(retry, failures + 1);
      });
    });
  }

  /**
   * An outage of all connections is logged elsewhere. An error that is no refusal is logged when it continues and
   * commands are answered.
   */
  async #failed(error: unknown): Promise<void> {
    this.#failures += 1;
    if (isRefusal(error)) this.#complainOfRefusal(error);
    else if (this.#failures >= QUIET_FAILURES && !this.#hasComplained && (await this.#isServed()))
      this.#complain(
        error,
        'Holdfast needs a second connection there. Look at "maxclients" and at what is in between.',
      );
  }

  #complainOfRefusal(error: unknown): void {
    // Else everything is refused: the password, the database.
    if (!this.#options.connection.isThere) return;
    this.#complain(
      error,
      'allow SUBSCRIBE, and PUBLISH to "holdfast:*", for the Redis user to have them woken at once.',
    );
  }

  #complain(error: unknown, remedy: string): void {
    if (this.#closed || this.#hasComplained) return;
    this.#hasComplained = true;
    this.#warn(
      `Cannot be notified of releases by ${this.#source.name} (${this.#textOf(error)}). Waiting callers poll every 500 ms until it works: ${remedy}`,
    );
  }

  /** Whether commands are answered, if only by a refusal. */
  async #isServed(): Promise<boolean> {
    const { connection, timeLimitMs } = this.#options;
    const reply = await connection.look(timeLimitMs, ({ client }) => client.command('ping'));
    return reply.status === 'answered' || reply.nodes[0]?.kind === 'error';
  }

  #isHeardAgain(): void {
    this.#failures = 0;
    if (!this.#hasComplained) return;
    this.#hasComplained = false;
    this.#warn(
      `Releases at ${this.#source.name} are heard again: waiting callers are woken at once.`,
    );
  }

  #textOf(error: unknown): string {
    return this.#source.redact(error instanceof Error ? error.message : String(error));
  }
}
