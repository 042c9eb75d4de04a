import type { ScriptCall } from '../scripts/script.js';

/**
 * What the library needs of a Redis client. `ioredis/` is behind it, and in tests a fake: nothing outside this folder
 * knows which.
 *
 * An answer of the server's that is an error rejects with a `ReplyError` (`reply-errors.ts`), everything else that went wrong with another
 * error. Nothing is queued while the connection is down, and nothing is sent twice.
 */
export interface RedisClient {
  readonly kind: 'single' | 'cluster';
  readonly state: ClientState;
  /** Whether it can subscribe to channels that belong to slots of a Cluster. */
  readonly hasShardedChannels: boolean;
  /** Begins to connect, and again when the connection breaks. The events report the outcome. */
  connect(): void;
  /**
   * Runs a script by its name. The server may not know it: `NOSCRIPT`.
   *
   * @param isAlone no other script is on its way, so there is nothing to send it together with
   */
  evalsha(sha: string, call: ScriptCall, isAlone: boolean): Promise<unknown>;
  command(...command: Command): Promise<unknown>;
  /** Sends commands together; of a Cluster, all to the node that has their keys. */
  pipeline(commands: readonly Command[]): Promise<readonly CommandResult[]>;
  /** The keys that a command names. */
  keysIn(command: Command): readonly string[];
  /** Listens over a connection of its own. On a Cluster: at the master with that address, or at any of them. */
  openSubscriber(events: SubscriberEvents, address?: string): SubscriberClient;
  /** The masters of a Cluster that are known; none before it is ready. */
  masters(): readonly Master[];
  /** On a Cluster: the address of the master that a slot is at, as far as is known. */
  ownerOf(slot: number): string | undefined;
  /** On a Cluster: asks where slots are, for they may have moved. */
  refreshSlots(): void;
  /** With one server: ends an existing connection and opens a new one. */
  reconnect?(): void;
  /** Ends the connection permanently. */
  disconnect(): void;
  /** What the operator may have mistaken where the connection was never usable: begins with a space, or is empty. */
  hintAt?(problem: string): string;
}

/** `'connecting'`: also between two tries. */
export type ClientState = 'idle' | 'connecting' | 'ready' | 'ended';

export type Command = readonly [name: string, ...args: (string | number)[]];

export type CommandResult = readonly [error: Error | null, value: unknown];

export interface ClientEvents {
  /** A try to connect has succeeded; the server has yet to answer. */
  readonly onConnect: () => void;
  readonly onReady: () => void;
  /** A try to connect has failed, or the connection. */
  readonly onError: (message: string) => void;
  /** The connection is gone; a new one follows unless it has ended. */
  readonly onClose: () => void;
  readonly onEnd: () => void;
  /** On a Cluster: `ownerOf` may answer otherwise than before. */
  readonly onSlots: () => void;
}

/** One master of a Cluster. */
export interface Master {
  readonly address: string;
  /** Connected, or about to be. Otherwise its first command connects. */
  readonly isConnected: boolean;
  /** Grows with what arrives over its connection: bytes or replies, as the client can tell. */
  readonly arrived: number;
  command(...command: Command): Promise<unknown>;
  /** Ends its connection. The next command for the master opens another one. */
  disconnect(): void;
}

/** Sharded channels belong to a slot of a Cluster, and only its master knows of them. */
export type ChannelKind = 'plain' | 'sharded';

/** A connection that only subscribes. It never reconnects: its owner opens another one. */
export interface SubscriberClient {
  readonly isReady: boolean;
  connect(): Promise<void>;
  subscribe(channel: string, kind: ChannelKind): Promise<void>;
  ping(): Promise<void>;
  disconnect(): void;
}

export interface SubscriberEvents {
  readonly onMessage: (message: string) => void;
  /** Something is wrong with it; while it connects, the promise tells that. */
  readonly onError: () => void;
  /** A slot of its channels has moved to another master. */
  readonly onMoved: () => void;
  /** Once. */
  readonly onEnd: () => void;
}

/** Opens connections of our own; the application's client is never used, changed or closed. */
export interface RedisSource {
  /** For messages: address, never credentials. */
  readonly name: string;
  /** The `keyPrefix` of the application's client: it becomes part of ours. */
  readonly keyPrefix: string;
  readonly isCluster: boolean;
  /** The number of the database that locks go to. */
  readonly database: number;
  /** Why writes over its connections cannot be known to have reached replicas; missing where they can. */
  readonly whyNoReplicas?: string;
  /** Not connected yet. */
  connect(events: ClientEvents): RedisClient;
  redact(text: string): string;
}
