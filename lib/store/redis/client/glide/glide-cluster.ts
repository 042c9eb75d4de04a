import calculateSlot from 'cluster-key-slot';
import type { Runtime } from '../../../../time/runtime.js';
import type { ScriptCall } from '../../scripts/script.js';
import { commandKeys } from '../command-keys.js';
import { settled, textOf } from '../commands.js';
import type {
  ClientState,
  Command,
  CommandResult,
  Master,
  RedisClient,
  SubscriberClient,
  SubscriberEvents,
} from '../redis-client.js';
import { GlideConnection, type GlideConnectionOptions } from './glide-connection.js';
import type { GlideSession } from './glide-session.js';
import type { Route } from './glide-shape.js';
import type { GlideMaker } from './glide-single.js';
import { GlideSubscriber, type SubscriberMaker } from './glide-subscriber.js';

const SLOTS = 16_384;

/** In the reply of CLUSTER SLOTS. */
type Range = readonly [first: number, last: number, master: readonly [host: unknown, port: number]];

type Mender = Pick<Required<GlideConnectionOptions>, 'mend'>;

/** A Cluster, with valkey-glide. It finds the node of a request by itself, and does not tell which nodes there are: we ask. */
export class GlideCluster implements RedisClient {
  readonly kind = 'cluster';
  /** GLIDE subscribes again by itself where a slot has moved to, and messages that are missed meanwhile go unnoticed. */
  readonly hasShardedChannels = false;
  readonly #connection: GlideConnection;
  readonly #createSubscriber: SubscriberMaker;
  readonly #onSlots: () => void;
  readonly #runtime: Runtime;
  #owners: readonly (string | undefined)[] = [];
  #masters: readonly GlideMaster[] = [];
  #isRefreshing = false;

  constructor({ create, createSubscriber, events, runtime, mend }: GlideMaker & Mender) {
    this.#createSubscriber = createSubscriber;
    this.#onSlots = events.onSlots;
    this.#runtime = runtime;
    this.#connection = new GlideConnection({
      ...{ create, events, runtime, mend },
      prepare: async (session) => {
        await this.#readSlots((args, route) => session.send(args, route));
      },
    });
  }

  get state(): ClientState {
    return this.#connection.state;
  }

  connect(): void {
    this.#connection.connect();
  }

  evalsha(sha: string, call: ScriptCall): Promise<unknown> {
    return this.command('evalsha', sha, ...call);
  }

  command(...command: Command): Promise<unknown> {
    const [key] = commandKeys(command);
    // Without a key to any master: GLIDE would ask replicas, too.
    const slot =
      key === undefined ? Math.floor(this.#runtime.random() * SLOTS) : calculateSlot(key);
    const route: Route =
      key === undefined ? { type: 'primarySlotId', id: slot } : { type: 'primarySlotKey', key };
    return this.#connection.send(textOf(command), route, () => this.#owners[slot]);
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
    return this.state === 'ready' ? this.#masters : [];
  }

  ownerOf(slot: number): string | undefined {
    return this.#owners[slot];
  }

  refreshSlots(): void {
    if (this.#isRefreshing || this.state !== 'ready') return;
    this.#isRefreshing = true;
    this.#readSlots((args, route) => this.#connection.send(args, route))
      .catch(() => undefined)
      .finally(() => {
        this.#isRefreshing = false;
      });
  }

  disconnect(): void {
    this.#connection.disconnect();
  }

  async #readSlots(send: GlideSession['send']): Promise<void> {
    const ranges = (await send(['cluster', 'slots'], 'randomNode')) as readonly Range[];
    const owners: (string | undefined)[] = [];
    for (const [first, last, [host, port]] of ranges) {
      // A node that does not know its own name leaves it out.
      if (typeof host !== 'string' || host === '') continue;
      for (let slot = first; slot <= last; slot += 1) owners[slot] = `${host}:${String(port)}`;
    }
    this.#owners = owners;
    const addresses = new Set(owners.filter((address) => address !== undefined));
    this.#masters = [...addresses].map((address) => new GlideMaster(address, this.#connection));
    this.#onSlots();
  }
}

class GlideMaster implements Master {
  readonly address: string;
  readonly isConnected = true;
  /** GLIDE does not tell. So only the reply to a ping shows that the master is not silent. */
  readonly arrived = 0;
  readonly #connection: GlideConnection;

  constructor(address: string, connection: GlideConnection) {
    this.address = address;
    this.#connection = connection;
  }

  command(...command: Command): Promise<unknown> {
    const at = this.address.lastIndexOf(':');
    const host = this.address.slice(0, at);
    const port = Number(this.address.slice(at + 1));
    const route = { type: 'routeByAddress', host, port } as const;
    return this.#connection.send(textOf(command), route, () => this.address);
  }

  /** GLIDE cannot end one connection: all of them are replaced. */
  disconnect(): void {
    this.#connection.reconnect();
  }
}
