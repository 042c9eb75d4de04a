import { createHash } from 'node:crypto';
import { exact } from '../lua/numbers.js';
import { fromBytes, toBytes } from './bytes.js';
import type { ChannelKind, Facts, Surroundings, Target } from './commands/command.js';
import { commandNamed, fits } from './commands/index.js';
import { Keyspace, type Changes, type Entry } from './keyspace.js';
import {
  ModelError,
  OUT_OF_MEMORY,
  READ_ONLY,
  Status,
  UndeclaredKey,
  UnknownCommand,
  type RawReply,
  type Reply,
} from './replies.js';
import { Scripts } from './scripts.js';
import { SortedSet } from './sorted-set.js';

export {
  ModelError,
  UndeclaredKey,
  UnknownCommand,
  type ChannelKind,
  type Changes,
  type Reply,
  type Surroundings,
};

export interface RedisModelOptions {
  /** Default: 7.0.15. */
  readonly version?: string;
  /** Of its first run. Default: made from the name. */
  readonly runId?: string;
  /** Tells servers apart whose run id is not given. */
  readonly name?: string;
  readonly isClusterNode?: boolean;
  /** Whether scripts may use declared keys only, as some servers demand. */
  readonly isStrict?: boolean;
  /** Told of what each command has changed, all at once: what replicas get, in this order. */
  readonly onChanges?: (changes: Changes) => void;
}

export type ModelCommand = readonly [name: string, ...args: (string | number)[]];

/** One key as it is at one time. */
export interface VisibleKey {
  readonly key: string;
  readonly type: 'string' | 'hash' | 'zset';
  /** A text; or fields and values; or members and scores. */
  readonly value: string | readonly string[];
  /** Redis' time in ms at whose end it is gone; `Infinity`: never. */
  readonly expiresAtMs: number;
}

/**
 * One Redis server, as far as this project needs it: its keys, its scripts, what it says of itself. It has no time and no connections
 * of its own, so nothing in it is left to chance. That it does what Redis does is proved by comparison (`model.spec.ts`).
 */
export class RedisModel implements Facts {
  /** What the world decides about the server. */
  role: Facts['role'] = 'master';
  connectedReplicas = 0;
  /** A full server refuses what needs memory, as with `maxmemory` and `noeviction`. */
  memory: Facts['memory'] = 'free';
  readonly version: string;
  readonly isClusterNode: boolean;
  readonly isStrict: boolean;
  readonly #onChanges: ((changes: Changes) => void) | undefined;
  readonly #scripts = new Scripts();
  #keyspace: Keyspace;
  #runId: string;
  #offset = 0;

  constructor(options: RedisModelOptions = {}) {
    const { version = '7.0.15', name = '', runId = runIdAfter(name), onChanges } = options;
    this.version = version;
    this.isClusterNode = options.isClusterNode ?? false;
    this.isStrict = options.isStrict ?? false;
    this.#onChanges = onChanges;
    this.#runId = runId;
    this.#keyspace = this.#noKeys();
  }

  get runId(): string {
    return this.#runId;
  }

  /** How many commands have changed its data: what replicas acknowledge. */
  get offset(): number {
    return this.#offset;
  }

  /**
   * Runs one command that arrives at the server, to its end. Gives what ioredis resolves with; where it rejects because the server
   * answers with an error, a `ModelError`.
   *
   * @throws UnknownCommand for what the model does not know
   */
  execute(command: ModelCommand, surroundings: Surroundings): Reply {
    this.#keyspace.nowMs = Math.floor(surroundings.nowUs / 1_000);
    const target = { keyspace: this.#keyspace, facts: this, surroundings };
    const reply = this.#run(command, target);
    if (this.#keyspace.hasChanged) this.#handOn();
    return clientReply(reply);
  }

  /** On a replica: what its master handed on. */
  apply(changes: Changes): void {
    this.#keyspace.apply(changes);
    this.#offset += 1;
  }

  /** Begins anew as a copy of another server, as a replica does that cannot go on from where it was. */
  copyFrom(other: RedisModel): void {
    this.#keyspace.copyFrom(other.#keyspace);
    this.#offset = other.#offset;
  }

  /** Ends the run of the server and begins another one, which knows no script. */
  restart(keeps: 'data' | 'nothing', runId = runIdAfter(this.#runId)): void {
    this.#runId = runId;
    this.#scripts.forget();
    if (keeps === 'nothing') this.#keyspace = this.#noKeys();
  }

  /** What a client could see at that time, in the order of the keys. */
  keysAt(nowUs: number): readonly VisibleKey[] {
    this.#keyspace.nowMs = Math.floor(nowUs / 1_000);
    return this.#keyspace.visible().map(([key, entry]) => visible(key, entry));
  }

  /** For how long it will keep a key; 0 if that does not exist, `Infinity` without an end. */
  leftMs(key: string, nowUs: number): number {
    const expiresAtMs = this.#keyspace.expiresAtMs(key) ?? -1;
    // Until the end of that millisecond.
    return Math.max(0, expiresAtMs + 1 - nowUs / 1_000);
  }

  /** The same for the same keys with the same values that expire at the same times. */
  digest(nowUs: number): string {
    return createHash('sha1')
      .update(JSON.stringify(this.keysAt(nowUs)))
      .digest('base64');
  }

  #run(command: ModelCommand, target: Target): RawReply {
    const name = command[0].toUpperCase();
    if (name === 'EVAL') {
      const [, text, ...rest] = command;
      // The text is long, and the same object each time: it is looked up as it is.
      return this.#scripts.eval(target, String(text), ['', '', ...argvOf(rest)]);
    }
    if (name === 'SCRIPT') return this.#scripts.manage(command.map(String));
    const argv = argvOf(command);
    if (name === 'EVALSHA') return this.#scripts.evalsha(target, argv);
    const known = commandNamed(name);
    if (known === undefined) throw new UnknownCommand(`the model knows no ${name}`);
    if (!fits(known, argv))
      return new ModelError(`ERR wrong number of arguments for '${name.toLowerCase()}' command`);
    const { memory, role } = this;
    if (memory === 'full' && known.kind === 'writes and needs memory') return OUT_OF_MEMORY;
    if (role === 'slave' && known.kind !== 'reads') return READ_ONLY;
    return known.run(target, argv);
  }

  #noKeys(): Keyspace {
    return new Keyspace(this.#onChanges === undefined ? 'nothing' : 'changes');
  }

  #handOn(): void {
    this.#offset += 1;
    const changes = this.#keyspace.takeChanges();
    this.#onChanges?.(changes);
  }
}

const argvOf = (parts: readonly (string | number)[]): string[] =>
  parts.map((part) => (typeof part === 'number' ? String(part) : toBytes(part)));

function clientReply(reply: RawReply): Reply {
  if (typeof reply === 'string') return fromBytes(reply);
  if (reply === null || typeof reply === 'number') return reply;
  if (reply instanceof ModelError) return new ModelError(fromBytes(reply.message));
  return reply instanceof Status ? reply.text : reply.map(clientReply);
}

function visible(bytes: string, { value, expiresAtMs }: Readonly<Entry>): VisibleKey {
  const key = fromBytes(bytes);
  if (typeof value === 'string')
    return { key, type: 'string', value: fromBytes(value), expiresAtMs };
  if (value instanceof SortedSet) {
    const members = value
      .slice(0)
      .flatMap(({ member, score }) => [fromBytes(member), exact(score)]);
    return { key, type: 'zset', value: members, expiresAtMs };
  }
  const fields = [...value].sort(([left], [right]) => (left < right ? -1 : 1)).flat();
  return { key, type: 'hash', value: fields.map(fromBytes), expiresAtMs };
}

/** 40 hexadecimal digits, as a server makes them at random. */
const runIdAfter = (before: string): string =>
  createHash('sha1').update(`run after ${before}`).digest('hex');
