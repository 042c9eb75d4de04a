import type { Runtime } from '../../../../time/runtime.js';
import type { ScriptCall } from '../../scripts/script.js';
import { commandKeys } from '../command-keys.js';
import { evalshaArgs, settled, textOf } from '../commands.js';
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
import { GlideConnection, type ClientMaker } from './glide-connection.js';
import { GlideSubscriber, type SubscriberMaker } from './glide-subscriber.js';

/** What makes the clients of one source. */
export interface GlideMaker {
  /** For commands. */
  readonly create: ClientMaker;
  readonly createSubscriber: SubscriberMaker;
  readonly events: ClientEvents;
  readonly runtime: Runtime;
}

/** One server, with valkey-glide. */
export class GlideSingle implements RedisClient {
  readonly kind = 'single';
  readonly hasShardedChannels = false;
  readonly #connection: GlideConnection;
  readonly #createSubscriber: SubscriberMaker;

  constructor({ create, createSubscriber, events, runtime }: GlideMaker) {
    this.#createSubscriber = createSubscriber;
    this.#connection = new GlideConnection({ create, events, runtime });
  }

  get state(): ClientState {
    return this.#connection.state;
  }

  connect(): void {
    this.#connection.connect();
  }

  evalsha(sha: string, call: ScriptCall): Promise<unknown> {
    return this.#connection.send(evalshaArgs(sha, call));
  }

  command(...command: Command): Promise<unknown> {
    return this.#connection.send(textOf(command));
  }

  pipeline(commands: readonly Command[]): Promise<readonly CommandResult[]> {
    return settled(commands.map((command) => this.command(...command)));
  }

  keysIn(command: Command): readonly string[] {
    return commandKeys(command);
  }

  openSubscriber(events: SubscriberEvents): SubscriberClient {
    return new GlideSubscriber(this.#createSubscriber, events);
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
    this.#connection.reconnect();
  }

  disconnect(): void {
    this.#connection.disconnect();
  }
}
