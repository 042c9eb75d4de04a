import type { Scheduler } from '../../../time/scheduler.js';
import type { RedisConnection } from '../client/redis-connection.js';
import type { ChannelKind, RedisSource } from '../client/redis-client.js';
import { replyError } from '../client/reply-errors.js';

/** The channels on which a process is called. */
export interface Channels {
  /** The kind of the first of them, and its name. */
  readonly address: string;
  /** Subscribes to all of them that are not subscribed to. Rejects with why it could not. */
  open(): Promise<void>;
  /** On which calls for keys of a slot come; `undefined` where it does not listen to those yet. */
  at(slot: number): string | undefined;
  /**
   * Also subscribes to calls for keys of a slot. When this has settled, the slot has a channel, permanently. Rejects
   * while the subscription does not stand yet.
   *
   * @param tag a hash tag that falls into the slot
   */
  add(slot: number, tag: string): Promise<void>;
  /** Commands may go to another server than before: `onGone` is called where that does not know who listens. Never rejects. */
  check(): Promise<void>;
  close(): void;
}

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

/** Scripts ignore the error of a message that is forbidden, because the release matters more. This trial reports it. */
export async function tryPublishing(
  { connection, timeLimitMs }: ChannelsOptions,
  channel: string,
  kind: ChannelKind = 'plain',
): Promise<void> {
  const reply = await connection.look(timeLimitMs, ({ client }) =>
    client.command(kind === 'sharded' ? 'spublish' : 'publish', channel, TRIAL),
  );
  if (reply.status === 'unavailable') {
    const [failure] = reply.nodes;
    const message = failure?.message ?? '';
    throw failure?.kind === 'error' ? replyError(message) : new Error(message);
  }
  if (kind === 'sharded' && reply.value === 0) throw new NotTheMaster();
}

/** A replica lets us listen, too, but its master does not know. */
export class NotTheMaster extends Error {
  constructor() {
    super('the slot is at another master');
  }
}
