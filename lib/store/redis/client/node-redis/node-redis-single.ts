import type { Runtime } from '../../../../time/runtime.js';
import type { ScriptCall } from '../../scripts/script.js';
import { commandKeys } from '../command-keys.js';
import { connectProblem, tlsHint } from '../connect-problem.js';
import { leavesReplicas } from '../leaves-replicas.js';
import { retryDelay } from '../retry-delay.js';
import type {
  ClientEvents,
  ClientState,
  Command,
  CommandResult,
  Master,
  RedisClient,
  SubscriberClient,
  SubscriberEvents,
} from '../redis-client.js';
import { CLOSED } from '../reply-errors.js';
import { evalshaArgs, settled, textOf } from '../commands.js';
import { NodeConnection, type Opener } from './node-connection.js';
import { NodeRedisSubscriber } from './node-redis-subscriber.js';

export interface NodeRedisSingleOptions {
  readonly open: Opener;
  readonly events: ClientEvents;
  readonly runtime: Runtime;
  readonly usesTls: boolean;
}

/** One server, or one behind Sentinel, with node-redis: one connection after the other. */
export class NodeRedisSingle implements RedisClient {
  readonly kind = 'single';
  readonly hasShardedChannels = true;
  readonly #options: NodeRedisSingleOptions;
  readonly #leaves: (reply: Error) => boolean;
  #state: ClientState = 'idle';
  #connection: NodeConnection | undefined;
  /** Tries to connect that have failed since the last one that did not. */
  #failures = 0;
  #cancelRetry: () => void = () => undefined;

  constructor(options: NodeRedisSingleOptions) {
    this.#options = options;
    this.#leaves = leavesReplicas(options.runtime);
  }

  get state(): ClientState {
    return this.#state;
  }

  connect(): void {
    if (this.#state !== 'idle') return;
    this.#state = 'connecting';
    this.#open();
  }

  evalsha(sha: string, call: ScriptCall): Promise<unknown> {
    return this.#send(evalshaArgs(sha, call));
  }

  command(...command: Command): Promise<unknown> {
    return this.#send(textOf(command));
  }

  pipeline(commands: readonly Command[]): Promise<readonly CommandResult[]> {
    return settled(commands.map((command) => this.command(...command)));
  }

  keysIn(command: Command): readonly string[] {
    return commandKeys(command);
  }

  openSubscriber(events: SubscriberEvents): SubscriberClient {
    return new NodeRedisSubscriber(this.#options.open, events);
  }

  masters(): readonly Master[] {
    return [];
  }

  ownerOf(): undefined {
    return undefined;
  }

  refreshSlots(): void {
    // There is one server.
  }

  reconnect(): void {
    // While the network connects, node-redis has a time limit of its own.
    if (this.#connection?.isConnected === true) this.#connection.end();
  }

  disconnect(): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    this.#cancelRetry();
    this.#connection?.end();
    this.#options.events.onEnd();
  }

  hintAt(problem: string): string {
    return tlsHint(this.#options.usesTls, problem);
  }

  #send(args: readonly string[]): Promise<unknown> {
    return this.#connection?.send(args) ?? Promise.reject(new Error(CLOSED));
  }

  #open(): void {
    const { open, events } = this.#options;
    this.#connection = new NodeConnection(open, {
      onConnect: events.onConnect,
      onReady: () => {
        this.#failures = 0;
        this.#state = 'ready';
        events.onReady();
      },
      onEnd: (problem) => {
        if (this.#state !== 'ended') this.#gone(problem);
      },
      onRefused: (reply) => {
        if (this.#leaves(reply)) this.reconnect();
      },
    });
  }

  /** @param problem of a try to connect; what ends a connection that stood says nothing of the next one */
  #gone(problem?: Error): void {
    const { events, runtime } = this.#options;
    const stood = this.#state === 'ready';
    this.#state = 'connecting';
    this.#failures += 1;
    this.#cancelRetry = runtime.setTimer(() => {
      this.#open();
    }, retryDelay(runtime)(this.#failures));
    if (problem !== undefined && !stood) events.onError(connectProblem(problem));
    events.onClose();
  }
}
