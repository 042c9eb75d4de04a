import { TLSSocket } from 'node:tls';
import type { Cluster, Redis } from 'ioredis';
import type { Runtime } from '../../../../time/runtime.js';
import type { ScriptCall } from '../../scripts/script.js';
import { IoredisSubscriber } from './ioredis-subscriber.js';
import { connectProblem, tlsHint } from '../connect-problem.js';
import { ClusterProblems } from './cluster-problems.js';
import { commandClassOf, evalShaClass } from './command-class.js';
import { addressOf, subscriberOptions } from './ioredis-options.js';
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
import { isReply } from '../reply-errors.js';

/** How many arguments of requests of one moment go out in one packet: those of about 16 requests. */
const MOST_GATHERED = 160;

/** What ioredis does alike for one server and for a Cluster. */
abstract class IoredisClient<Client extends Redis | Cluster> {
  protected readonly client: Client;
  readonly hasShardedChannels: boolean;
  readonly #Command: ReturnType<typeof commandClassOf>;
  readonly #EvalSha: ReturnType<typeof evalShaClass>;

  constructor(client: Client, { onConnect, onReady, onError, onClose, onEnd }: ClientEvents) {
    this.client = client;
    this.#Command = commandClassOf(client);
    this.#EvalSha = evalShaClass(this.#Command);
    this.hasShardedChannels = 'ssubscribe' in client;
    client.on('connect', onConnect);
    client.on('ready', () => {
      if (this.state === 'ready') onReady();
    });
    client.on('error', (error: Error) => {
      if (!isOfSelect(error)) onError(this.problemOf(error));
    });
    client.on('close', onClose);
    client.on('end', onEnd);
  }

  get state(): ClientState {
    const { status } = this.client;
    if (status === 'ready') return 'ready';
    if (status === 'wait') return 'idle';
    return status === 'end' ? 'ended' : 'connecting';
  }

  connect(): void {
    this.client.connect().catch(() => undefined); // told by the 'error' event
  }

  evalsha(sha: string, call: ScriptCall, isAlone: boolean): Promise<unknown> {
    if (!isAlone) this.gather(call.length);
    return this.client.sendCommand(new this.#EvalSha(sha, call)) as Promise<unknown>;
  }

  command(...[name, ...args]: Command): Promise<unknown> {
    this.gather(1 + args.length);
    return this.client.call(name, ...args);
  }

  async pipeline(commands: readonly Command[]): Promise<readonly CommandResult[]> {
    this.gather(commands.flat().length);
    return (await this.client.pipeline(commands.map((command) => [...command])).exec()) ?? [];
  }

  /** Takes the first argument for a key where ioredis does not know the command, as those of modules. */
  keysIn([name, ...args]: Command): readonly string[] {
    const known = name.toLowerCase();
    if (!(known in this.client)) return args.slice(0, 1).map(String);
    return new this.#Command(known, args).getKeys().map(String);
  }

  disconnect(): void {
    this.client.disconnect();
  }

  /** What went wrong with a connection, and what to do about it where that is known. */
  protected problemOf(error: Error): string {
    return connectProblem(error);
  }

  /** Before anything is sent, with the number of its arguments. */
  protected abstract gather(size: number): void;
}

/** One server, or one behind Sentinel. */
export class IoredisSingle extends IoredisClient<Redis> implements RedisClient {
  readonly kind = 'single';
  readonly #makeSubscriber: () => Redis;
  /** The arguments of requests of this moment that have not gone out, while they are held back. */
  #gathered = 0;
  #isCorked = false;
  /** What has not gone out goes at the end of this moment. */
  #isPlanned = false;

  constructor(client: Redis, events: ClientEvents, makeSubscriber: () => Redis) {
    super(client, events);
    this.#makeSubscriber = makeSubscriber;
  }

  /** iovalkey becomes ready over a connection that it ends, because the login was refused. */
  override get state(): ClientState {
    const isEnding = this.client.status === 'ready' && !this.client.stream.writable;
    return isEnding ? 'connecting' : super.state;
  }

  openSubscriber(events: SubscriberEvents): SubscriberClient {
    return new IoredisSubscriber(this.#makeSubscriber(), events);
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
    const { status } = this.client;
    // While it connects, ioredis has time limits of its own.
    if (status === 'ready' || status === 'connect') this.client.disconnect(true);
  }

  hintAt(problem: string): string {
    const { options, stream } = this.client;
    const isShakingHands = stream instanceof TLSSocket && isPending(stream);
    return tlsHint(options.tls !== undefined, problem, isShakingHands);
  }

  /**
   * Requests of the same moment are sent together, but no more than the server can begin with while this process
   * continues. Otherwise the two take turns, and each waits for the other.
   */
  protected gather(size: number): void {
    const { stream } = this.client;
    this.#gathered += size;
    if (this.#isCorked && this.#gathered <= MOST_GATHERED) return;
    if (this.#isCorked) stream.uncork();
    this.#isCorked = size <= MOST_GATHERED;
    if (!this.#isCorked) return;
    this.#gathered = size;
    stream.cork();
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    process.nextTick(() => {
      this.#isPlanned = false;
      this.#isCorked = false;
      stream.uncork();
    });
  }
}

export class IoredisCluster extends IoredisClient<Cluster> implements RedisClient {
  readonly kind = 'cluster';
  readonly #runtime: Runtime;
  readonly #problems: ClusterProblems;

  constructor(client: Cluster, events: ClientEvents, runtime: Runtime) {
    super(client, events);
    this.#problems = new ClusterProblems(client);
    this.#runtime = runtime;
    client.on('refresh', events.onSlots);
  }

  openSubscriber(events: SubscriberEvents, address?: string): SubscriberClient {
    const masters = this.client.nodes('master');
    const node =
      address === undefined
        ? masters[Math.floor(this.#runtime.random() * masters.length)]
        : masters.find(({ options }) => addressOf(options) === address);
    if (node === undefined) throw new Error('no master of the cluster is known yet');
    return new IoredisSubscriber(node.duplicate(subscriberOptions(this.#runtime)), events);
  }

  masters(): readonly Master[] {
    return this.client.nodes('master').map((master) => new IoredisMaster(master));
  }

  ownerOf(slot: number): string | undefined {
    return this.client.slots[slot]?.[0];
  }

  refreshSlots(): void {
    if (this.client.status === 'ready') this.client.refreshSlotsCache();
  }

  protected override problemOf(error: Error): string {
    return this.#problems.problemOf(error);
  }

  /** Each of its nodes has a connection, which ioredis makes when it is first needed. */
  protected gather(): void {
    // Nothing to do.
  }
}

class IoredisMaster implements Master {
  readonly address: string;
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
    this.address = addressOf(redis.options);
  }

  get isConnected(): boolean {
    const { status } = this.#redis;
    return status !== 'wait' && status !== 'end';
  }

  get arrived(): number {
    // There is no stream before it connects for the first time.
    const { stream } = this.#redis as Partial<Redis>;
    return stream?.bytesRead ?? 0;
  }

  command(...[name, ...args]: Command): Promise<unknown> {
    return this.#redis.call(name, ...args);
  }

  disconnect(): void {
    this.#redis.disconnect();
  }
}

/**
 * ioredis selects a database by itself, reports the refusal as if the connection had failed, and continues. We ask
 * again.
 */
const isOfSelect = (error: Error & { readonly command?: { readonly name: string } }): boolean =>
  isReply(error) && error.command?.name === 'select';

/** Connected, with the handshake not over: Node knows, and does not document it. It says the same of a socket that failed to connect. */
const isPending = (socket: TLSSocket): boolean =>
  !socket.connecting &&
  !socket.destroyed &&
  (socket as { readonly secureConnecting?: boolean }).secureConnecting === true;
