import { Random } from '../../faults/random.js';
import { Digest } from './digest.js';
import { EventQueue, Phase, type Event } from './event-queue.js';
import { settle } from './settle.js';

/** Branches of the one seed. What is drawn from one of them does not shift the others. */
const BRANCHES = ['network', 'processes', 'faults'] as const;

/** True time, chance, and what is to happen next. Everything in a simulation hangs on one of these. */
export class World {
  /** Of everything that happens in it. */
  readonly digest = new Digest();
  readonly random: Readonly<Record<(typeof BRANCHES)[number], Random>>;
  readonly #events = new EventQueue();
  #nowUs = 0;
  #steps = 0;

  constructor(seed: number) {
    const source = new Random(seed);
    const [network, processes, faults] = BRANCHES.map((_, branch) => source.fork(branch + 1));
    this.random = { network: network!, processes: processes!, faults: faults! };
  }

  /** Nobody in the world can read it. */
  get nowUs(): number {
    return this.#nowUs;
  }

  get nowMs(): number {
    return this.#nowUs / 1_000;
  }

  /** How many events have happened. */
  get steps(): number {
    return this.#steps;
  }

  in(delayUs: number, callback: () => void, phase = Phase.Usual): Event {
    return this.#events.add(this.#nowUs + Math.max(0, Math.round(delayUs)), callback, phase);
  }

  at(atUs: number, callback: () => void): Event {
    return this.in(atUs - this.#nowUs, callback);
  }

  /** Until nothing is left to happen, or that time is over. Tells which. */
  run(untilUs: number): 'idle' | 'time is over' {
    settle();
    for (let event = this.#events.take(); event !== undefined; event = this.#events.take()) {
      if (event.atUs > untilUs) return 'time is over';
      this.#nowUs = event.atUs;
      this.#steps += 1;
      event.callback!();
      settle();
    }
    return 'idle';
  }
}
