import type { Lock } from '../../../../lib/lease/lock.js';
import type { History } from '../history.js';
import type { SimProcess } from '../world/sim-process.js';
import type { SimServer } from '../world/sim-server.js';
import type { World } from '../world/world.js';

/** How much later than its deadline a holder may be told: a timer of Node's is late, and fires once more. */
const LATE_MS = 5;

/**
 * The same where only the wall clock knows, because the machine slept or somebody has set it: no timer goes by that. The next renewal finds
 * it out, a third of the longest TTL later.
 */
const UNNOTICED_MS = 1_400;

/** What a holder believes. */
export type Held = Pick<Lock, 'keys' | 'isHeld' | 'remainingMs' | 'signal'>;

/** Somebody who was granted a lock and has not begun to give it back. */
export interface Holding {
  readonly process: SimProcess;
  readonly ask: number;
  readonly mode: string;
  readonly places: number | undefined;
  readonly lock: Held;
  /** Whether its holder relies on the signal. */
  readonly listens: boolean;
}

/** One who has the lock itself. */
export interface LockHolding extends Holding {
  readonly lock: Lock;
}

interface HoldingsOptions {
  readonly world: World;
  readonly history: History;
  readonly servers: readonly SimServer[];
}

/**
 * Everybody who was granted something, all over the world. At every grant all of them look whether they still believe to hold what they have:
 * two who hold one key at once do so at the moment when the later one is granted it.
 */
export class Holdings {
  readonly #world: World;
  readonly #history: History;
  readonly #servers: readonly SimServer[];
  readonly #all = new Set<Holding>();

  constructor({ world, history, servers }: HoldingsOptions) {
    this.#world = world;
    this.#history = history;
    this.#servers = servers;
  }

  /** All look who have one of its keys. */
  add(holding: Holding): void {
    const { keys } = holding.lock;
    for (const other of this.#all)
      if (other.lock.keys.some((key) => keys.includes(key))) this.look(other);
    this.look(holding);
    this.#all.add(holding);
    if (holding.listens) this.#watch(holding);
  }

  /** By how much a fencing token is ahead of the clocks of all servers. */
  aheadMs(fencingToken: number): number {
    const latestUs = Math.max(...this.#servers.map(({ clock }) => clock.wallUs));
    return (fencingToken - latestUs) / 1_000;
  }

  remove(holding: Holding): void {
    this.#all.delete(holding);
  }

  /** All of a process: it was stopped, or is about to die. */
  lookAt(process: SimProcess): void {
    for (const holding of this.#all) {
      if (holding.process !== process) continue;
      this.look(holding);
      if (process.isAwake && !holding.listens && !holding.lock.isHeld) this.#unheard(holding);
    }
  }

  /** It is about to die; what it has lost by then, without noticing, is free. */
  dies(process: SimProcess): void {
    for (const holding of this.#all) {
      if (holding.process !== process) continue;
      this.#all.delete(holding);
      if (!process.isAwake || holding.lock.isHeld) this.look(holding);
      else this.#unheard(holding);
    }
  }

  /** It has lost what it did not listen to, and will not look any more if it dies. */
  #unheard({ process, ask }: Holding): void {
    this.#history.record({ type: 'lost', client: process.name, ask, reason: 'unheard' });
  }

  /** Looks when the lock is over unless it was renewed: its holder has to know then. */
  #watch(holding: Holding): void {
    const { process, lock } = holding;
    const leftUs = (lock.remainingMs / process.clock.rate) * 1_000;
    this.#world.in(Math.ceil(leftUs) + 1, () => {
      if (this.#isSettled(holding)) return;
      if (!lock.isHeld) {
        this.#expectNotice(holding);
        return;
      }
      this.look(holding);
      this.#watch(holding);
    });
  }

  /** The holder knows by now, or in a moment, unless its process can do nothing. */
  #expectNotice(holding: Holding): void {
    const { process, lock } = holding;
    const { clock } = process;
    const allowedMs = clock.undisturbedForMs < Infinity ? UNNOTICED_MS : LATE_MS;
    this.#world.in(allowedMs * 1_000, () => {
      if (this.#isSettled(holding)) return;
      const hadTime = Math.min(process.hasRunForMs, clock.undisturbedForMs) >= allowedMs;
      if (lock.isHeld)
        this.#watch(holding); // its clock was set back
      else if (hadTime)
        this.#history.record({ type: 'overdue', client: process.name, ask: holding.ask });
      else this.#expectNotice(holding);
    });
  }

  #isSettled(holding: Holding): boolean {
    return !this.#all.has(holding) || holding.process.isDead || holding.lock.signal.aborted;
  }

  /** Nobody can look whose process stands still. */
  look({ process, ask, lock }: Holding): void {
    if (!process.isAwake || !lock.isHeld) return;
    const believedMs = lock.remainingMs / process.clock.rate;
    const client = process.name;
    this.#history.record({ type: 'held', client, ask, until: this.#world.nowMs + believedMs });
    for (const key of lock.keys) {
      const keptMs = this.#keptMs(key);
      if (keptMs < believedMs)
        this.#history.record({ type: 'uncovered', client, ask, key, believedMs, keptMs });
    }
  }

  /** For how long a majority of the servers will keep a key. */
  #keptMs(key: string): number {
    const each = this.#servers.map((server) => server.leftMs(`lock:${key}`));
    return each.sort((a, b) => b - a)[Math.floor(each.length / 2)]!;
  }
}
