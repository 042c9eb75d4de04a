import { Faults } from './faults.js';
import { History, type SimEvent } from './history.js';
import { Application } from './programme/application.js';
import type { Parcel } from './programme/detaching.js';
import { Holdings } from './programme/holdings.js';
import { isOfOperator, replaces, type CallerPlan, type Scenario } from './scenario.js';
import type { DeliveryOrder } from './world/deliveries.js';
import { Network } from './world/network.js';
import { assertSettles } from './world/settle.js';
import { SimProcess } from './world/sim-process.js';
import { SimServer } from './world/sim-server.js';
import { World } from './world/world.js';

/** A world that has not come to rest by then never will, in ms. */
const LONGEST_MS = 600_000;

/** Longer than any lease or place in line lasts, in ms; a clock that was set back adds what it was set back by. */
const ALL_IS_OVER_MS = 120_000;

export interface Played {
  readonly scenario: Scenario;
  readonly events: readonly SimEvent[];
  readonly isAtRest: boolean;
  readonly simulatedMs: number;
  readonly steps: number;
  readonly faults: number;
  readonly digest: string;
}

/**
 * Plays a scenario from its beginning until nothing more happens, before this returns. To be called within `ownTurn`.
 *
 * @param order decides which message arrives next, instead of the latency of each
 */
export function play(scenario: Scenario, order?: DeliveryOrder): Played {
  assertSettles();
  const stage = new WorldStage(scenario, order);
  const record = (error: unknown): void => {
    stage.history.record({ type: 'unhandled', error: String(error) });
  };
  process.on('unhandledRejection', record);
  // Nobody reads the stacks, and to make them takes a tenth of the time.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return stage.play();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    process.off('unhandledRejection', record);
  }
}

class WorldStage {
  readonly world: World;
  readonly history: History;
  readonly holdings: Holdings;
  readonly network: Network;
  readonly servers: readonly SimServer[];
  readonly #scenario: Scenario;
  readonly #faults: Faults;
  readonly #applications: Application[] = [];
  readonly #lives: number[] = [];

  constructor(scenario: Scenario, order: DeliveryOrder | undefined) {
    this.#scenario = scenario;
    const world = new World(scenario.seed, order);
    this.world = world;
    this.history = new History(world);
    this.servers = scenario.servers.map((plan, index) => new SimServer(world, `s${index}`, plan));
    this.holdings = new Holdings(this);
    const addresses = new Map(this.servers.map((server) => [server.name, server]));
    this.network = new Network(world, scenario.network, addresses);
    this.#faults = new Faults(this, scenario);
    scenario.processes.forEach(({ startMs, callers }, index) => {
      world.at(startMs * 1_000, () => this.#start(index, callers));
    });
  }

  application(process: number): Application | undefined {
    return this.#applications[process];
  }

  startAgain(process: number): void {
    this.#start(process, this.#applications[process]!.unfinished);
  }

  play(): Played {
    const { world, history } = this;
    const rest = world.run(LONGEST_MS * 1_000);
    this.#lookAtKeys();
    return {
      scenario: this.#scenario,
      events: history.events,
      isAtRest: rest === 'idle' && this.#applications.every(({ hasEnded }) => hasEnded),
      simulatedMs: world.nowMs,
      steps: world.steps,
      faults: this.#faults.done,
      digest: world.digest.text,
    };
  }

  #start(index: number, callers: readonly CallerPlan[]): void {
    const { world, network, history, holdings, servers } = this;
    const { processes, service } = this.#scenario;
    const { clock, handoff } = processes[index]!;
    const life = this.#lives[index] ?? 0;
    this.#lives[index] = life + 1;
    const machine = `p${index}`;
    const name = life === 0 ? machine : `${machine}.${life + 1}`;
    const process = new SimProcess(world, { name, machine, clock });
    const addresses = servers.map((server) => server.name);
    const application = new Application({
      ...{ process, network, history, holdings, addresses, service, handoff },
      isFirst: life === 0,
      send: (parcel, { to, afterMs }) => {
        for (const ms of afterMs) world.in(ms * 1_000, () => this.#deliver(to, parcel));
      },
      isKnown: isKnown(this.#scenario),
    });
    this.#applications[index] = application;
    process.input(() => {
      void application.run(callers);
    });
  }

  #deliver(to: number, parcel: Parcel): void {
    const application = this.#applications[to];
    if (application === undefined || application.hasEnded) return;
    application.process.input(() => void application.receive(parcel));
  }

  #setBackMs(server: number): number {
    const steps = this.#scenario.faults.map((fault) =>
      fault.kind === 'server-clock-set' && fault.server === server ? fault.byMs : 0,
    );
    return -steps.filter((byMs) => byMs < 0).reduce((sum, byMs) => sum + byMs, 0);
  }

  #lookAtKeys(): void {
    this.servers.forEach(({ server, clock }, index) => {
      for (const { name } of server.keys(clock.wallUs))
        if (/^lock:[^{]/.test(name)) this.history.record({ type: 'orphan', server: index, name });
      const laterUs = clock.wallUs + (ALL_IS_OVER_MS + this.#setBackMs(index)) * 1_000;
      for (const { name, ttlMs } of server.keys(laterUs))
        this.history.record({ type: 'left-key', server: index, name, ttlMs });
    });
  }
}

/** Whether instances have to be found by others. */
const isKnown = (scenario: Scenario): boolean =>
  scenario.faults.some(isOfOperator) || replaces(scenario);
