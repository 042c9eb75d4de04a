import { Random } from '../../faults/random.js';
import { History } from '../history.js';
import { Holdings } from '../programme/holdings.js';
import type { ServicePlan } from '../scenario.js';
import type { ClockPlan } from '../world/clock.js';
import { BOTH, type LinkPlan } from '../world/link.js';
import { Network } from '../world/network.js';
import { SimProcess } from '../world/sim-process.js';
import { SimServer } from '../world/sim-server.js';
import { World } from '../world/world.js';
import { Database } from './database.js';
import { ExplorerProcess, type Recorded } from './explorer-process.js';
import type { Fact, News } from './facts.js';
import { NodeWatch } from './node-watch.js';
import type { Action, NetworkConditions, Setup, Step } from './setup.js';

/** Latency differs by up to this part of it. */
const JITTER = 0.2;

const RIGHT: ClockPlan = { skewMs: 0, drift: 0 };

/** So long the library waits for the answer of a node. */
const NODE_TIMEOUT_MS = 500;

/** A process that runs, and what runs in it. */
interface Running {
  readonly process: SimProcess;
  readonly application: ExplorerProcess;
}

/**
 * The world of the explorer: the library in simulated processes, on simulated Redis servers, in a simulated network. `test/techniques/simulation` has
 * all of them; this class decides what happens in them, and writes down what did.
 */
export class ExplorerWorld {
  readonly setup: Setup;
  readonly facts: Fact[] = [];
  readonly #world: World;
  readonly #servers: readonly SimServer[];
  readonly #watches: readonly NodeWatch[];
  readonly #plan: { -readonly [Name in keyof LinkPlan]: LinkPlan[Name] };
  readonly #network: Network;
  readonly #history: History;
  readonly #holdings: Holdings;
  readonly #database = new Database();
  readonly #clocks: readonly ClockPlan[];
  readonly #running: Running[] = [];
  readonly #lives: number[] = [];
  readonly #byName = new Map<string, ExplorerProcess>();
  readonly #byIds = new Map<string, number>();
  readonly #turn: () => Promise<void>;

  /** @param turn resolves when everything that promises can bring about has happened: in the next turn of the event loop */
  constructor(setup: Setup, steps: readonly Step[], turn: () => Promise<void>) {
    const { seed, nodes, processes, skewMs, network } = setup;
    this.setup = setup;
    this.#turn = turn;
    const world = new World(seed);
    this.#world = world;
    const chance = new Random(seed).fork(7);
    const clocks = Array.from({ length: nodes + processes }, () => ({
      skewMs: Math.round((2 * chance.fraction() - 1) * skewMs),
      drift: 0,
    }));
    this.#clocks = clocks.slice(nodes);
    this.#servers = clocks
      .slice(0, nodes)
      .map((clock, index) => new SimServer(world, `n${String(index)}`, { clock, replicas: 0 }));
    this.#watches = this.#servers.map((server, index) => {
      const processOf = (token: string): number | undefined => this.#processOf(token);
      return new NodeWatch({ world, server, index, processOf });
    });
    this.#plan = linkPlan(network);
    const addresses = new Map(this.#servers.map((server) => [server.name, server]));
    this.#network = new Network(world, this.#plan, addresses);
    this.#history = new ToldHistory(world, (event) => {
      if ('ask' in event) this.#byName.get(event.client)?.hear(event);
    });
    this.#holdings = new Holdings({ world, history: this.#history, servers: this.#servers });
    for (let index = 0; index < processes; index += 1) world.at(0, () => this.#start(index));
    for (const { atMs, action } of steps) this.plan(action, atMs);
  }

  /** To be done at that time; of times that are over, now. */
  plan(action: Action, atMs: number): void {
    this.#world.at(atMs * 1_000, () => this.#do(action));
  }

  async playTo(endMs: number): Promise<void> {
    for (;;) {
      await this.#turn();
      for (const watch of this.#watches) {
        const news = watch.look();
        if (news !== undefined) this.#tell(news);
      }
      if (this.#world.step(endMs * 1_000) !== 'happened') break;
    }
  }

  isDead(process: number): boolean {
    return this.#running[process]?.process.isDead ?? true;
  }

  isPaused(process: number): boolean {
    return this.#running[process]?.process.standsStill ?? false;
  }

  isUp(node: number): boolean {
    return this.#server(node).isUp;
  }

  isCut(process: number, node: number): boolean {
    return this.#link(process, node).isCut('to server');
  }

  #do(action: Action): void {
    switch (action.kind) {
      case 'lock':
        this.#alive(action.process, ({ process, application }) => {
          process.input(() => void application.lock(action));
        });
        break;
      case 'pause':
        this.#alive(action.process, ({ process }) => {
          this.#tell({ type: 'pauses', process: action.process, forMs: action.forMs });
          process.standStill(action.forMs, 'stopped');
        });
        break;
      case 'kill':
        this.#kill(action.process);
        break;
      case 'restart':
        this.#kill(action.process);
        this.#start(action.process);
        break;
      case 'stop':
        if (!this.isUp(action.node)) break;
        this.#tell({ type: 'node stops', node: action.node, data: action.data });
        this.#server(action.node).crash(action.data);
        break;
      case 'start':
        if (this.isUp(action.node)) break;
        this.#tell({ type: 'node starts', node: action.node });
        this.#server(action.node).start(0);
        break;
      case 'cut':
        if (this.isCut(action.process, action.node)) break;
        this.#tell({ type: 'cut', process: action.process, node: action.node });
        this.#link(action.process, action.node).cut(BOTH);
        break;
      case 'join':
        if (!this.isCut(action.process, action.node)) break;
        this.#tell({ type: 'joined', process: action.process, node: action.node });
        this.#link(action.process, action.node).heal(BOTH);
        break;
      case 'network': {
        const { latencyMs, lossRate } = action;
        this.#tell({ type: 'network', latencyMs, lossRate });
        Object.assign(this.#plan, linkPlan(action));
      }
    }
  }

  #start(index: number): void {
    const life = this.#lives[index] ?? 0;
    this.#lives[index] = life + 1;
    const machine = `p${String(index)}`;
    const name = life === 0 ? machine : `${machine}.${String(life + 1)}`;
    const world = this.#world;
    const process = new SimProcess(world, { name, machine, clock: this.#clocks[index] ?? RIGHT });
    this.#byIds.set(process.runtime.idPrefix, index);
    const application = new ExplorerProcess({
      ...{ process, world, index, network: this.#network, database: this.#database },
      ...{ history: this.#history, holdings: this.#holdings, service: serviceOf(this.setup) },
      ...{ ttlMs: this.setup.ttlMs, handoff: true, isFirst: life === 0 },
      addresses: this.#servers.map((server) => server.name),
      tell: (news) => this.#tell(news),
    });
    this.#byName.set(name, application);
    this.#running[index] = { process, application };
  }

  #kill(index: number): void {
    this.#alive(index, ({ process }) => {
      this.#tell({ type: 'dies', process: index });
      this.#holdings.dies(process);
      process.die();
    });
  }

  #alive(index: number, act: (running: Running) => void): void {
    const running = this.#running[index];
    if (running !== undefined && !running.process.isDead) act(running);
  }

  #link(process: number, node: number) {
    return this.#network.link(`p${String(process)}`, this.#server(node).name);
  }

  #server(node: number): SimServer {
    const server = this.#servers[node];
    if (server === undefined) throw new RangeError(`There is no node ${String(node)}.`);
    return server;
  }

  #processOf(token: string): number | undefined {
    const ids = /\.([0-9a-f]{8})-/.exec(token)?.[1];
    return ids === undefined ? undefined : this.#byIds.get(ids);
  }

  #tell(news: News): void {
    this.facts.push({ atMs: this.#world.nowMs, ...news });
  }
}

/** Passes on what is recorded. */
class ToldHistory extends History {
  readonly #hear: (event: Recorded) => void;

  constructor(world: World, hear: (event: Recorded) => void) {
    super(world);
    this.#hear = hear;
  }

  override record(event: Recorded): void {
    super.record(event);
    this.#hear(event);
  }
}

const linkPlan = ({ latencyMs, lossRate }: NetworkConditions): LinkPlan => ({
  ...{ latencyUs: latencyMs * 1_000, jitterUs: latencyMs * 1_000 * JITTER, lossRate },
});

const serviceOf = ({ ttlMs, restartGuard }: Setup): ServicePlan => ({
  ...{ nodeTimeoutMs: NODE_TIMEOUT_MS, clockDrift: 0.01, shutdownTimeoutMs: 0 },
  ...(restartGuard && { restartGuard: { maxTtlMs: ttlMs } }),
});
