import calculateSlot from 'cluster-key-slot';
import type { NodeFailure } from '../errors.js';
import type { Command, RedisClient, SubscriberClient } from '../store/redis/client/redis-client.js';
import type { RedisConnection } from '../store/redis/client/redis-connection.js';
import {
  hashTagOf,
  isOneSlot,
  keyNames,
  trialKey,
  type KeyNames,
} from '../store/redis/scripts/key-names.js';
import { systemRuntime } from '../time/runtime.js';

/** What a server replied, or why it did not. */
export type RedisAnswer =
  | { readonly status: 'answered'; readonly value: unknown }
  | {
      readonly status: 'failed';
      /** `'error'`: the server refused. */
      readonly kind: NodeFailure['kind'];
      /** Without credentials. */
      readonly message: string;
    };

interface RedisServerFacts {
  readonly name: string;
  readonly prefix: string;
  readonly database: number;
  readonly connection: RedisConnection;
  readonly command: RedisClient['command'];
  readonly timeLimitMs: number;
}

/**
 * At most this many names are tried to find one that belongs to a master of a Cluster. A thousand masters are the most
 * that Redis advises.
 */
const MOST_TRIALS = 100_000;

/** One Redis, or one master of a Cluster, over a connection as a lock service has it. */
export class RedisServer {
  /** `host:port`. */
  readonly name: string;
  /** How the names of keys begin there: the `keyPrefix` of the client and that of the locks. */
  readonly prefix: string;
  readonly database: number;
  readonly isClusterNode: boolean;
  readonly #facts: RedisServerFacts;

  /** @internal */
  constructor(facts: RedisServerFacts) {
    this.name = facts.name;
    this.prefix = facts.prefix;
    this.database = facts.database;
    this.isClusterNode = facts.connection.client.kind === 'cluster';
    this.#facts = facts;
  }

  /** Sends a command. Never rejects. */
  async ask(...command: Command): Promise<RedisAnswer> {
    const { connection, timeLimitMs, command: send } = this.#facts;
    const reply = await connection.look(timeLimitMs, () => send(...command));
    if (reply.status === 'answered') return reply;
    const [failure] = reply.nodes;
    const { kind = 'connection', message = 'no answer' } = failure ?? {};
    return { status: 'failed', kind, message };
  }

  /**
   * The names of a key that no caller can lock, and that the Redis user may use if it may use any. In a Cluster, they
   * are at this master; `undefined` where the prefix puts all keys at another one.
   */
  trialNames(): KeyNames | undefined {
    const namesOf = keyNames(this.prefix);
    const id = systemRuntime.uuid();
    const { client } = this.#facts.connection;
    for (let trial = 1; trial <= MOST_TRIALS; trial += 1) {
      const names = namesOf(trialKey(id, trial));
      if (!this.isClusterNode || client.ownerOf(calculateSlot(names.main)) === this.name)
        return names;
      if (isOneSlot(this.prefix)) return undefined;
    }
    return undefined;
  }

  /**
   * Sends itself a message, over a sharded channel in the slot of these names, or over a plain one. Resolves with the
   * reason why the message did not arrive, and with `undefined` when it did. Never rejects.
   */
  async tryMessage(names?: KeyNames): Promise<string | undefined> {
    const { connection, timeLimitMs } = this.#facts;
    const kind = names === undefined ? 'plain' : 'sharded';
    const place = names === undefined ? '' : `:{${hashTagOf(names)}}`;
    const channel = `holdfast:${systemRuntime.uuid()}${place}`;
    let arrived = (): void => undefined;
    let cancel = (): void => undefined;
    const arrival = new Promise<string | undefined>((resolve) => {
      arrived = () => {
        resolve(undefined);
      };
      cancel = systemRuntime.setTimer(() => {
        resolve(`none within ${String(timeLimitMs)} ms`);
      }, timeLimitMs);
    });
    const ignore = (): void => undefined;
    let subscriber: SubscriberClient | undefined;
    try {
      const events = { onMessage: arrived, onError: ignore, onMoved: ignore, onEnd: ignore };
      const address = this.isClusterNode ? this.name : undefined;
      subscriber = connection.client.openSubscriber(events, address);
      // Whatever hangs here is over with the time limit of the arrival.
      const listening = subscriber.connect().then(() => subscriber?.subscribe(channel, kind));
      const late = arrival.then((problem) => Promise.reject(new Error(problem)));
      late.catch(ignore);
      await Promise.race([listening, late]);
      const sent = await this.ask(kind === 'sharded' ? 'spublish' : 'publish', channel, 'trial');
      return sent.status === 'failed' ? sent.message : await arrival;
    } catch (problem) {
      return problem instanceof Error ? problem.message : String(problem);
    } finally {
      cancel();
      subscriber?.disconnect();
    }
  }
}
