import type { Command } from '../../../../lib/store/redis/client/redis-client.js';
import { replyError } from '../../../../lib/store/redis/client/reply-errors.js';
import {
  ModelError,
  RedisModel,
  type Reply,
  type Surroundings,
  type VisibleKey,
} from '../redis/model.js';
import type { Answer } from './connection.js';

/** What a command may know of the world. */
export type Context = Pick<Surroundings, 'nowUs' | 'publish' | 'subscribers'>;

/** The data of a Redis server, and what it does with commands. */
export class Server {
  readonly #model: RedisModel;

  constructor(model: RedisModel) {
    this.#model = model;
  }

  execute(command: Command, context: Context): Answer {
    const reply = this.#model.execute(command, context);
    return reply instanceof ModelError ? { error: reply.message } : { value: received(reply) };
  }

  /** Another process of it. */
  restart(data: 'kept' | 'lost'): void {
    this.#model.restart(data === 'kept' ? 'data' : 'nothing');
  }

  /** A copy of its data, at a server of its own. */
  copy(name: string): Server {
    const model = new RedisModel({ name, isStrict: true });
    model.copyFrom(this.#model);
    return new Server(model);
  }

  setMemory(memory: 'full' | 'enough'): void {
    this.#model.memory = memory === 'full' ? 'full' : 'free';
  }

  setReplicas(count: number): void {
    this.#model.connectedReplicas = count;
  }

  /** How many commands have changed its data. */
  get offset(): number {
    return this.#model.offset;
  }

  /** For how long it will keep a key, by its clock; 0 if that does not exist. */
  leftMs(key: string, nowUs: number): number {
    return this.#model.leftMs(key, nowUs);
  }

  /** All that it has at that time by its clock. Looking changes nothing. */
  visible(nowUs: number): readonly VisibleKey[] {
    return this.#model.keysAt(nowUs);
  }

  /** Those that exist at that time by its clock. */
  keys(nowUs: number): readonly { readonly name: string; readonly ttlMs: number }[] {
    return this.#model.keysAt(nowUs).map(({ key, expiresAtMs }) => ({
      name: key,
      ttlMs: expiresAtMs === Infinity ? -1 : Math.round(expiresAtMs - nowUs / 1_000),
    }));
  }
}

/** Errors within an answer, as a client has them. */
function received(reply: Reply): unknown {
  if (reply instanceof ModelError) return replyError(reply.message);
  return Array.isArray(reply) ? reply.map(received) : reply;
}

export const newServer = (name: string): Server =>
  new Server(new RedisModel({ name, isStrict: true }));
