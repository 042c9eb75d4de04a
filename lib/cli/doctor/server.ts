import calculateSlot from 'cluster-key-slot';
import type { Command, RedisClient } from '../../store/redis/client/redis-client.js';
import type { RedisConnection } from '../../store/redis/client/redis-connection.js';
import {
  epochName,
  hashTagOf,
  isOneSlot,
  keyNames,
  trialKey,
  type KeyNames,
} from '../../store/redis/scripts/key-names.js';
import type { Runtime } from '../../time/runtime.js';

/** What a server answered, or why it did not. */
export type Answer =
  | { readonly status: 'answered'; readonly value: unknown }
  | {
      readonly status: 'failed';
      /** `'error'`: the server refused. */
      readonly kind: 'error' | 'connection' | 'timeout' | 'refused';
      /** Redacted. */
      readonly message: string;
    };

interface ServerOptions {
  readonly name: string;
  readonly prefix: string;
  readonly database: number;
  readonly connection: RedisConnection;
  readonly command: RedisClient['command'];
  readonly runtime: Runtime;
  readonly timeLimitMs: number;
}

/**
 * At most this many names are tried to find one that belongs to a master of a Cluster. A thousand masters are the most
 * that Redis advises.
 */
const MOST_TRIALS = 100_000;

/** One server that is examined: a Redis, or one master of a Cluster. */
export class Server {
  readonly name: string;
  /** Of the names of keys, with that of the application's client. */
  readonly prefix: string;
  readonly database: number;
  readonly runtime: Runtime;
  readonly timeLimitMs: number;
  readonly connection: RedisConnection;
  readonly #command: RedisClient['command'];
  readonly #infos = new Map<string, Promise<Answer>>();
  #epoch: Promise<Answer> | undefined;

  constructor(options: ServerOptions) {
    const { name, prefix, database, connection, command, runtime, timeLimitMs } = options;
    this.name = name;
    this.prefix = prefix;
    this.database = database;
    this.connection = connection;
    this.runtime = runtime;
    this.timeLimitMs = timeLimitMs;
    this.#command = command;
  }

  get isClusterNode(): boolean {
    return this.connection.client.kind === 'cluster';
  }

  /** Never rejects. */
  async ask(...command: Command): Promise<Answer> {
    const reply = await this.connection.look(this.timeLimitMs, () => this.#command(...command));
    if (reply.status === 'answered') return reply;
    const [failure] = reply.nodes;
    const { kind = 'connection', message = 'no answer' } = failure ?? {};
    return { status: 'failed', kind, message };
  }

  /** One section of INFO, asked for once. */
  info(section: string): Promise<Answer> {
    const known = this.#infos.get(section) ?? this.ask('info', section);
    this.#infos.set(section, known);
    return known;
  }

  /** The account of the restart guard. On a Cluster there is none. */
  epoch(): Promise<Answer> {
    this.#epoch ??= this.isClusterNode
      ? Promise.resolve({ status: 'answered', value: null })
      : this.ask('get', epochName(this.prefix));
    return this.#epoch;
  }

  /** Names that no lock has, that the Redis user may use if it may use any, and that are at this server; `undefined` where none are. */
  trialNames(): KeyNames | undefined {
    const namesOf = keyNames(this.prefix);
    const id = this.runtime.uuid();
    const { client } = this.connection;
    for (let trial = 1; trial <= MOST_TRIALS; trial += 1) {
      const names = namesOf(trialKey(id, trial));
      if (!this.isClusterNode || client.ownerOf(calculateSlot(names.main)) === this.name)
        return names;
      if (isOneSlot(this.prefix)) return undefined;
    }
    return undefined;
  }

  /** A channel that belongs to a slot of this master of a Cluster. */
  shardedChannel(names: KeyNames): string {
    return `holdfast:${this.runtime.uuid()}:{${hashTagOf(names)}}`;
  }
}

/** One field of a section of INFO; `undefined` where the server does not name it. */
export const fieldIn = (answer: Answer, name: string): string | undefined =>
  answer.status === 'answered' && typeof answer.value === 'string'
    ? new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(answer.value)?.[1]
    : undefined;

/** One setting, of an answer to CONFIG GET: a list of names and values, or what a client makes of that. */
export function settingIn(answer: Answer, name: string): string | undefined {
  if (answer.status === 'failed') return undefined;
  const { value } = answer;
  if (Array.isArray(value)) {
    const flat = value.flat() as unknown[];
    const at = flat.indexOf(name);
    return at === -1 ? undefined : String(flat[at + 1]);
  }
  const found: unknown =
    value instanceof Map
      ? value.get(name)
      : (value as Readonly<Record<string, unknown>> | null)?.[name];
  return typeof found === 'string' ? found : undefined;
}
