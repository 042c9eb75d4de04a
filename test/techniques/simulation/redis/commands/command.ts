import type { Keyspace } from '../keyspace.js';
import type { RawReply } from '../replies.js';

export type ChannelKind = 'plain' | 'sharded';

/** The world around a server, at the moment when a command arrives. */
export interface Surroundings {
  /** What the clock of the server shows. */
  readonly nowUs: number;
  /** Delivers a message. Answers how many connections to this server it reaches. */
  publish(channel: string, message: string, kind: ChannelKind): number;
  /** How many connections to this server listen to a channel. */
  subscribers(channel: string, kind: ChannelKind): number;
  /** How many replicas have everything up to this offset; a server without them needs none. `WAIT` gives this at once. */
  acknowledgedBy?(offset: number): number;
}

/** What a server says of itself. */
export interface Facts {
  readonly version: string;
  readonly runId: string;
  readonly role: 'master' | 'slave';
  readonly connectedReplicas: number;
  readonly isClusterNode: boolean;
  /** Whether scripts may use declared keys only. */
  readonly isStrict: boolean;
  readonly memory: 'free' | 'full';
  /** How many commands have changed its data. */
  readonly offset: number;
}

/** What a command works on. */
export interface Target {
  readonly keyspace: Keyspace;
  readonly facts: Facts;
  readonly surroundings: Surroundings;
}

export interface Command {
  /** How many parts it has with its name; negative: at least so many. */
  readonly arity: number;
  /** What Redis knows of it: whether a replica refuses it, and a full server. */
  readonly kind: 'reads' | 'writes' | 'writes and needs memory';
  /** Whether scripts may call it. */
  readonly isForScripts: boolean;
  /** @param argv with its name first */
  run(target: Target, argv: readonly string[]): RawReply;
}

type Run = Command['run'];

export const reads = (arity: number, run: Run): Command => ({
  ...{ arity, run, kind: 'reads', isForScripts: true },
});

export const writes = (arity: number, run: Run): Command => ({
  ...{ arity, run, kind: 'writes', isForScripts: true },
});

export const grows = (arity: number, run: Run): Command => ({
  ...{ arity, run, kind: 'writes and needs memory', isForScripts: true },
});
