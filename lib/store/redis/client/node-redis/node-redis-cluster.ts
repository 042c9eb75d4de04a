import calculateSlot from 'cluster-key-slot';
import type { Runtime } from '../../../../time/runtime.js';
import { within } from '../../../../time/clock.js';
import type { ScriptCall } from '../../scripts/script.js';
import { commandKeys } from '../command-keys.js';
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
import { CLOSED, isReply, messageOf } from '../reply-errors.js';
import { retryDelay } from '../retry-delay.js';
import { ClusterNode, NotConnected } from './cluster-node.js';
import { evalshaArgs, settled, textOf } from '../commands.js';
import type { Opener } from './node-connection.js';
import { NodeRedisSubscriber } from './node-redis-subscriber.js';

export interface NodeRedisClusterOptions {
  /** The address of each node that the application names, and how to connect to it. */
  readonly roots: readonly (readonly [address: string, open: Opener])[];
  /** How to connect to any node. */
  readonly openAt: (address: string) => Opener;
  readonly events: ClientEvents;
  readonly runtime: Runtime;
}

/** The longest that one node is asked where slots are. */
const LONGEST_LOOK_MS = 2_000;

/** As many as node-redis and ioredis follow. */
const MOST_REDIRECTIONS = 16;

/**
 * A Cluster, with clients of node-redis for its nodes. Its own client for Clusters would not report which node a slot is at, begin when a
 * node is away, or leave a node that is silent.
 */
export class NodeRedisCluster implements RedisClient {
  readonly kind = 'cluster';
  readonly hasShardedChannels = true;
  readonly #options: NodeRedisClusterOptions;
  #state: ClientState = 'idle';
  #failures = 0;
  #cancelRetry: () => void = () => undefined;
  /** The masters that have slots, and those that a redirection has named. */
  readonly #masters = new Map<string, ClusterNode>();
  /** By slot: the address of its master. */
  #owners: readonly (string | undefined)[] = [];
  #looking: Promise<void> | undefined;

  constructor(options: NodeRedisClusterOptions) {
    this.#options = options;
  }

  get state(): ClientState {
    return this.#state;
  }

  connect(): void {
    if (this.#state !== 'idle') return;
    this.#state = 'connecting';
    void this.#look();
  }

  evalsha(sha: string, call: ScriptCall): Promise<unknown> {
    const [keyCount, key] = call;
    return this.#send(keyCount > 0 ? slotOf(key) : undefined, evalshaArgs(sha, call));
  }

  command(...command: Command): Promise<unknown> {
    return this.#send(slotOf(commandKeys(command)[0]), textOf(command));
  }

  async pipeline(commands: readonly Command[]): Promise<readonly CommandResult[]> {
    const [key] = commands.flatMap(commandKeys);
    for (let redirections = 0; ; redirections += 1) {
      const node = this.#nodeOf(slotOf(key));
      const results = await settled(await node.sendAll(commands.map(textOf)));
      const targets = results.flatMap(([error]) => redirectionOf(error, node) ?? []);
      const moves = targets.filter(({ isForOnce }) => !isForOnce);
      for (const { slot, address } of moves) this.#moved(slot, address);
      // What the node did not take may be sent again, but not apart from what it took.
      if (moves.length < results.length || redirections === MOST_REDIRECTIONS) return results;
    }
  }

  keysIn(command: Command): readonly string[] {
    return commandKeys(command);
  }

  openSubscriber(events: SubscriberEvents, address?: string): SubscriberClient {
    const { open } = address === undefined ? this.#nodeOf(undefined) : this.#nodeAt(address);
    return new NodeRedisSubscriber(open, events);
  }

  masters(): readonly Master[] {
    return [...this.#masters.values()];
  }

  ownerOf(slot: number): string | undefined {
    return this.#owners[slot];
  }

  refreshSlots(): void {
    if (this.#state === 'ready') void this.#look();
  }

  disconnect(): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    this.#cancelRetry();
    for (const node of this.#masters.values()) node.disconnect();
    this.#masters.clear();
    this.#options.events.onEnd();
  }

  async #send(slot: number | undefined, args: readonly string[]): Promise<unknown> {
    let node = this.#nodeOf(slot);
    let isAsking = false;
    for (let redirections = 0; ; redirections += 1) {
      try {
        if (!isAsking) return await node.send(args);
        const [asking, reply] = await node.sendAll([['asking'], args]);
        return (await Promise.all([asking, reply]))[1];
      } catch (error) {
        const target =
          redirections < MOST_REDIRECTIONS ? await this.#redirection(error, node, slot) : undefined;
        // What was not answered is not sent again: the node may have run it.
        if (target === undefined || this.#state !== 'ready') throw error;
        isAsking = target.isForOnce;
        node = this.#nodeAt(target.address);
        if (!isAsking) this.#moved(target.slot, target.address);
      }
    }
  }

  /** Returns where a request goes that a node did not take. */
  async #redirection(
    error: unknown,
    from: ClusterNode,
    slot: number | undefined,
  ): Promise<Redirection | undefined> {
    if (!(error instanceof NotConnected) || slot === undefined) return redirectionOf(error, from);
    // A master that died may have a successor.
    await this.#look();
    const address = this.#owners[slot];
    return address === undefined || address === from.address
      ? undefined
      : { slot, address, isForOnce: false };
  }

  #moved(slot: number, address: string): void {
    if (this.#owners[slot] === address) return;
    const owners = [...this.#owners];
    owners[slot] = address;
    this.#owners = owners;
    this.#options.events.onSlots();
    this.refreshSlots();
  }

  #nodeOf(slot: number | undefined): ClusterNode {
    if (slot === undefined) {
      const nodes = [...this.#masters.values()];
      const node = nodes[Math.floor(this.#options.runtime.random() * nodes.length)];
      if (node === undefined) throw new Error('no master of the cluster is known yet');
      return node;
    }
    const address = this.#owners[slot];
    if (address !== undefined) return this.#nodeAt(address);
    this.refreshSlots();
    throw new Error(`no master of slot ${String(slot)} is known yet`);
  }

  #nodeAt(address: string): ClusterNode {
    if (this.#state === 'ended') throw new Error(CLOSED);
    const known = this.#masters.get(address);
    if (known !== undefined) return known;
    const node = new ClusterNode(address, this.#options.openAt(address), () => {
      this.refreshSlots();
    });
    this.#masters.set(address, node);
    return node;
  }

  /** Finds out where slots are. Never rejects. */
  #look(): Promise<void> {
    this.#looking ??= this.#tryLooking().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #tryLooking(): Promise<void> {
    const { events, runtime } = this.#options;
    let problem = 'no node of the cluster is known';
    for await (const [address, ranges] of this.#answers((each) => (problem = each))) {
      if (this.#isOver()) return;
      this.#adopt(ranges, address);
      this.#failures = 0;
      const begins = this.#state === 'connecting';
      this.#state = 'ready';
      events.onSlots();
      if (!begins) return;
      events.onConnect();
      events.onReady();
      return;
    }
    if (this.#isOver()) return;
    this.#failures += 1;
    this.#cancelRetry = runtime.setTimer(() => {
      void this.#look();
    }, retryDelay(runtime)(this.#failures));
    const stood = this.#state === 'ready';
    this.#state = 'connecting';
    events.onError(`no node of the cluster can be asked for its slots: ${problem}`);
    if (stood) events.onClose();
  }

  #isOver(): boolean {
    return this.#state === 'ended';
  }

  /** What each node replies, those first that are connected. */
  async *#answers(
    onProblem: (problem: string) => void,
  ): AsyncGenerator<readonly [string, readonly Range[]]> {
    const known = [...this.#masters.values()].sort(
      (one, other) => Number(other.isConnected) - Number(one.isConnected),
    );
    const ofMasters = known.map((node) => [node, false] as const);
    const ofRoots = this.#options.roots.map(
      ([address, open]) => [new ClusterNode(address, open, () => undefined), true] as const,
    );
    for (const [node, isRoot] of [...ofMasters, ...ofRoots]) {
      try {
        const asked = node.command('cluster', 'SLOTS');
        const reply = await within(this.#options.runtime, LONGEST_LOOK_MS, asked);
        if (Array.isArray(reply) && reply.length > 0)
          yield [node.address, reply as readonly Range[]];
        else onProblem(`${node.address}: ${reply === undefined ? 'no reply' : 'no slots'}`);
      } catch (error) {
        onProblem(`${node.address}: ${messageOf(error)}`);
      } finally {
        if (isRoot) node.disconnect();
      }
    }
  }

  /** @param witness the address of the node that has replied: it may not name itself */
  #adopt(ranges: readonly Range[], witness: string): void {
    const owners: string[] = [];
    for (const [first, last, [host, port]] of ranges) {
      const address = addressOf(host === null || host === '' ? hostOf(witness) : host, port);
      this.#nodeAt(address);
      for (let slot = first; slot <= last; slot += 1) owners[slot] = address;
    }
    this.#owners = owners;
    const inUse = new Set(owners);
    for (const [address, node] of this.#masters) {
      if (inUse.has(address)) continue;
      this.#masters.delete(address);
      node.disconnect();
    }
  }
}

/** In the reply of CLUSTER SLOTS. */
type Range = readonly [
  first: number,
  last: number,
  master: readonly [host: string | null, port: number],
];

const addressOf = (host: string, port: number): string => `${host}:${String(port)}`;

const hostOf = (address: string): string => address.slice(0, address.lastIndexOf(':'));

const slotOf = (key: string | number | undefined): number | undefined =>
  key === undefined ? undefined : calculateSlot(String(key));

interface Redirection {
  readonly slot: number;
  readonly address: string;
  /** For this command only: the slot is being moved. */
  readonly isForOnce: boolean;
}

function redirectionOf(error: unknown, from: ClusterNode): Redirection | undefined {
  const found = isReply(error) ? /^(MOVED|ASK) (\d+) (\S*):(\d+)/.exec(error.message) : null;
  if (found === null) return undefined;
  const [, kind, slot, host = '', port] = found;
  return {
    slot: Number(slot),
    address: addressOf(host === '' ? hostOf(from.address) : host, Number(port)),
    isForOnce: kind === 'ASK',
  };
}
