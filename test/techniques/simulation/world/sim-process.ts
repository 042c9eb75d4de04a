import type { ClockPlan } from './clock.js';
import { SimClock } from './clock.js';
import type { Connection } from './connection.js';
import { Phase } from './event-queue.js';
import { SimRuntime, type Enter } from './sim-runtime.js';
import type { World } from './world.js';

/** How a process stands still. Of one whose machine sleeps, the monotonic clock does, too. */
export type Standstill = 'stopped' | 'blocked' | 'asleep';

interface Entry {
  readonly callback: () => void;
  readonly phase: Phase;
  readonly isInput: boolean;
}

interface SimProcessOptions {
  readonly name: string;
  readonly machine: string;
  readonly clock: ClockPlan;
}

/** An operating system process: its clock, its event loop, its connections. What runs in it is another matter. */
export class SimProcess {
  readonly name: string;
  /** Where it runs. */
  readonly machine: string;
  readonly clock: SimClock;
  /** The library's. */
  readonly runtime: SimRuntime;
  /** That of the code which calls the library. */
  readonly applicationRuntime: SimRuntime;
  readonly connections = new Set<Connection>();
  /** Called when it runs again. */
  onResume: () => void = () => undefined;
  readonly #world: World;
  #backlog: Entry[] = [];
  /** What has piled up and is due now. */
  #due = 0;
  #standsStillUntilUs = 0;
  #isDead = false;

  constructor(world: World, { name, machine, clock }: SimProcessOptions) {
    this.#world = world;
    this.name = name;
    this.machine = machine;
    this.clock = new SimClock(world, clock);
    const enter: Enter = (callback, phase) => {
      // What waits for input to be read is an event of its own, behind all input of the moment.
      if (phase === Phase.AfterInput) world.in(0, () => this.#enter(callback, phase, false), phase);
      else this.#enter(callback, phase, false);
    };
    this.runtime = new SimRuntime(world, this.clock, enter);
    this.applicationRuntime = new SimRuntime(world, this.clock, enter);
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  get standsStill(): boolean {
    return this.#world.nowUs < this.#standsStillUntilUs;
  }

  /** It runs, and can look at its clock. */
  get isAwake(): boolean {
    return !this.#isDead && !this.standsStill;
  }

  /** Since it stood still last. */
  get hasRunForMs(): number {
    return (this.#world.nowUs - this.#standsStillUntilUs) / 1_000;
  }

  /** Something has arrived for it. */
  input(callback: () => void): void {
    this.#enter(callback, Phase.Usual, true);
  }

  /** Timers come late, and what arrives piles up. */
  standStill(forMs: number, how: Standstill): void {
    if (this.#isDead) return;
    const untilUs = this.#world.nowUs + Math.round(forMs * 1_000);
    if (untilUs <= this.#standsStillUntilUs) return;
    if (how === 'asleep') this.clock.stopMonotonic();
    this.#standsStillUntilUs = untilUs;
    this.#world.at(untilUs, () => {
      if (!this.standsStill) this.#resume();
    });
  }

  /** SIGKILL: nothing more runs in it, and its system closes its connections. */
  die(): void {
    this.#end();
    for (const connection of [...this.connections]) connection.abandon();
  }

  /** Its machine has gone, and servers do not notice. */
  vanish(): void {
    this.#end();
    for (const connection of [...this.connections]) connection.stall();
  }

  #end(): void {
    this.#isDead = true;
    this.#backlog = [];
    this.runtime.clear();
    this.applicationRuntime.clear();
  }

  #enter(callback: () => void, phase: Phase, isInput: boolean): void {
    if (this.#isDead) return;
    if (this.standsStill) this.#backlog.push({ callback, phase, isInput });
    else if (this.#due > 0) this.#enterNext(callback, phase, isInput);
    else callback();
  }

  /** Behind everything that is due already. */
  #enterNext(callback: () => void, phase: Phase, isInput: boolean): void {
    this.#due += 1;
    this.#world.in(
      0,
      () => {
        this.#due -= 1;
        if (this.#isDead) return;
        if (this.standsStill) this.#backlog.push({ callback, phase, isInput });
        else callback();
      },
      phase,
    );
  }

  /** The event loop goes on with its timers or with its sockets, whatever it was at. */
  #resume(): void {
    if (this.#isDead) return;
    this.clock.startMonotonic();
    const backlog = this.#backlog;
    this.#backlog = [];
    const inputFirst = this.#world.random.processes.chance(0.5);
    const later = backlog.filter(({ phase }) => phase === Phase.AfterInput);
    const usual = backlog.filter(({ phase }) => phase === Phase.Usual);
    const inputs = usual.filter(({ isInput }) => isInput);
    const timers = usual.filter(({ isInput }) => !isInput);
    const inOrder = inputFirst ? [...inputs, ...timers] : [...timers, ...inputs];
    for (const { callback, phase, isInput } of [...inOrder, ...later])
      this.#enterNext(callback, phase, isInput);
    this.onResume();
  }
}
