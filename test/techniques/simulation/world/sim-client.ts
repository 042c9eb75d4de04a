import type {
  ClientEvents,
  ClientState,
  Command,
  CommandResult,
  RedisClient,
  RedisSource,
  SubscriberClient,
  SubscriberEvents,
} from '../../../../lib/store/redis/client/redis-client.js';
import { leavesReplicas } from '../../../../lib/store/redis/client/leaves-replicas.js';
import { retryDelay } from '../../../../lib/store/redis/client/retry-delay.js';
import {
  CLOSED,
  isLoginRefusal,
  replyError,
} from '../../../../lib/store/redis/client/reply-errors.js';
import type { ScriptCall } from '../../../../lib/store/redis/scripts/script.js';
import type { ClientKind } from '../scenario.js';
import type { Answer, Connection } from './connection.js';
import type { Network } from './network.js';
import type { SimProcess } from './sim-process.js';
import { CONNECT_TIMEOUT_MS, SimSubscriber } from './sim-subscriber.js';

/** Until a connection that is being closed is closed by us. */
const DISCONNECT_TIMEOUT_MS = 250;

/** Between two questions whether the server has loaded its data. */
const LOADING_RETRY_MS = 100;

/** An address in the simulated network, for one process. */
export class SimSource implements RedisSource {
  readonly name: string;
  readonly keyPrefix = '';
  readonly isCluster = false;
  readonly database = 0;
  readonly process: SimProcess;
  readonly network: Network;

  readonly client: ClientKind;

  constructor(process: SimProcess, network: Network, name: string, client: ClientKind = 'ioredis') {
    this.process = process;
    this.network = network;
    this.name = name;
    this.client = client;
  }

  connect(events: ClientEvents): RedisClient {
    return new SimClient(this, events);
  }

  redact(text: string): string {
    return text;
  }
}

/** GLIDE keeps the order of this many requests. Its adapter holds the others back. */
const MOST_ON_THEIR_WAY = 32;

/** How often it pings an unused connection. */
const PING_MS = 1_000;

/**
 * Behaves as `IoredisSingle` does with the options that the library gives it; or as the adapters of the other clients do:
 *
 * - node-redis ends a connection at once: what is on its way fails.
 * - GLIDE connects twice, first to find out whether the server is there. Of its requests, 32 are on their way, and the others are held back.
 *   That a connection is over is known when a request fails, or a ping after a second without requests.
 */
class SimClient implements RedisClient {
  readonly kind = 'single';
  readonly hasShardedChannels = false;
  readonly #source: SimSource;
  readonly #events: ClientEvents;
  readonly #retryDelay: (times: number) => number;
  readonly #leaves: (error: Error) => unknown;
  readonly #pending = new Set<(error: Error) => void>();
  #state: ClientState = 'idle';
  #connection: Connection | undefined;
  #held: (() => void)[] = [];
  #isBroken = false;
  #isClosing = false;
  #isEnding = false;
  #tries = 0;
  #cancelTimer: () => void = () => undefined;
  #cancelPing: () => void = () => undefined;

  constructor(source: SimSource, events: ClientEvents) {
    this.#source = source;
    this.#events = events;
    this.#retryDelay = retryDelay(source.process.runtime);
    this.#leaves = leavesReplicas(source.process.runtime);
  }

  get state(): ClientState {
    return this.#state;
  }

  connect(): void {
    if (this.#state !== 'idle') return;
    this.#state = 'connecting';
    this.#dial();
  }

  evalsha(sha: string, call: ScriptCall): Promise<unknown> {
    return this.command('evalsha', sha, ...call);
  }

  async command(...command: Command): Promise<unknown> {
    const answer = await this.#send(command);
    if ('error' in answer) throw replyError(answer.error);
    return answer.value;
  }

  pipeline(commands: readonly Command[]): Promise<readonly CommandResult[]> {
    return Promise.all(
      commands.map((command) =>
        this.command(...command).then(
          (value): CommandResult => [null, value],
          (error: unknown): CommandResult => [error as Error, undefined],
        ),
      ),
    );
  }

  keysIn([, key]: Command): readonly string[] {
    return [String(key)];
  }

  openSubscriber(events: SubscriberEvents): SubscriberClient {
    return new SimSubscriber(this.#source, events);
  }

  masters(): readonly [] {
    return [];
  }

  ownerOf(): undefined {
    return undefined;
  }

  refreshSlots(): void {
    // No Cluster.
  }

  reconnect(): void {
    // While TCP connects, ioredis has a time limit of its own.
    if (this.#connection?.isOpen === true) this.#close();
  }

  disconnect(): void {
    if (this.#state === 'ended') return;
    this.#isEnding = true;
    if (this.#connection === undefined) {
      this.#cancelTimer();
      this.#end();
    } else this.#close();
  }

  #send(command: Command): Promise<Answer> {
    if (this.#isBroken) {
      // The first request after the end of the connection shows it.
      this.#closed();
      return Promise.reject(new Error(CLOSED));
    }
    const connection = this.#connection;
    if (this.#state !== 'ready' || this.#isClosing || connection === undefined)
      return Promise.reject(
        new Error("Stream isn't writeable and enableOfflineQueue options is false"),
      );
    return new Promise((resolve, reject) => {
      this.#pending.add(reject);
      const send = (): void => {
        connection.request(command, (answer) => {
          this.#pending.delete(reject);
          if ('error' in answer && this.#leaves(new Error(answer.error)) === true) this.reconnect();
          resolve(answer);
          this.#held.shift()?.();
        });
      };
      const isFull = this.#source.client === 'glide' && this.#pending.size > MOST_ON_THEIR_WAY;
      if (isFull) this.#held.push(send);
      else send();
    });
  }

  #dial(why: 'to find out' | 'to use it' = 'to find out'): void {
    const { process, network, name, client } = this.#source;
    const isProbe = client === 'glide' && why === 'to find out';
    const { runtime } = process;
    const connection = network.dial(process, name, {
      onOpen: () => {
        if (isProbe) {
          connection.abandon();
          this.#cancelTimer();
          this.#dial('to use it');
          return;
        }
        this.#events.onConnect();
        this.#checkReadiness(connection);
      },
      onRefused: () => {
        this.#events.onError(`connect ECONNREFUSED ${name}`);
        this.#closed();
      },
      onClosed: () => {
        const isUnnoticed = this.#source.client === 'glide' && this.#pending.size === 0;
        if (isUnnoticed && this.#state === 'ready' && !this.#isEnding) this.#isBroken = true;
        else this.#closed();
      },
      onMessage: () => undefined,
    });
    this.#connection = connection;
    this.#cancelTimer = runtime.setTimer(() => {
      connection.abandon();
      this.#events.onError('connect ETIMEDOUT');
      this.#closed();
    }, CONNECT_TIMEOUT_MS);
  }

  /** As ioredis does: INFO, until it says that nothing is being loaded. */
  #checkReadiness(connection: Connection): void {
    connection.request(['ping'], (answer) => {
      if (this.#isClosing) return;
      this.#cancelTimer();
      if ('error' in answer && isLoginRefusal(answer.error)) {
        this.#events.onError(answer.error);
        connection.abandon();
        this.#closed();
        return;
      }
      if ('error' in answer) {
        const { runtime } = this.#source.process;
        this.#cancelTimer = runtime.setTimer(
          () => this.#checkReadiness(connection),
          LOADING_RETRY_MS,
        );
        return;
      }
      this.#tries = 0;
      this.#state = 'ready';
      if (this.#source.client === 'glide') this.#pingLater();
      this.#events.onReady();
    });
  }

  #pingLater(): void {
    this.#cancelPing();
    this.#cancelPing = this.#source.process.runtime.setTimer(() => {
      if (this.#state !== 'ready') return;
      this.#pingLater(); // before the ping, which may show that the connection has ended
      if (this.#pending.size === 0) this.#send(['ping']).catch(() => undefined);
    }, PING_MS);
  }

  /** Sends no more, and waits for a moment for what is still to come. */
  #close(): void {
    const connection = this.#connection;
    if (this.#isClosing || connection === undefined) return;
    this.#cancelTimer();
    if (this.#source.client !== 'ioredis') {
      connection.abandon();
      this.#closed();
      return;
    }
    this.#isClosing = true;
    connection.finish();
    this.#cancelTimer = this.#source.process.runtime.setTimer(() => {
      connection.abandon();
      this.#closed();
    }, DISCONNECT_TIMEOUT_MS);
  }

  #closed(): void {
    this.#cancelTimer();
    this.#connection = undefined;
    this.#isClosing = false;
    this.#isBroken = false;
    this.#cancelPing();
    this.#held = [];
    this.#state = 'connecting';
    const lost =
      this.#source.client === 'ioredis'
        ? Object.assign(new Error('Reached the max retries per request limit (which is 0)'), {
            name: 'MaxRetriesPerRequestError',
          })
        : new Error(CLOSED);
    for (const reject of this.#pending) reject(lost);
    this.#pending.clear();
    if (this.#isEnding) {
      this.#end();
      return;
    }
    this.#events.onClose();
    this.#tries += 1;
    this.#cancelTimer = this.#source.process.runtime.setTimer(
      () => this.#dial(),
      this.#retryDelay(this.#tries),
    );
  }

  #end(): void {
    this.#state = 'ended';
    this.#events.onClose();
    this.#events.onEnd();
  }
}
