import { Random } from '../../faults/random.js';
import { OrderedDeliveries, type Delivery, type DeliveryOrder } from './deliveries.js';
import { Digest } from './digest.js';
import { EventQueue, Phase, type Event } from './event-queue.js';
import { settle } from './settle.js';

/** Branches of the one seed. What is drawn from one of them does not shift the others. */
const BRANCHES = ['network', 'processes', 'faults'] as const;

/** Node fires a timer so much late, in µs, even if nothing else is to be done. */
export const LATE_US = 1_000;

/** True time, chance, and what is to happen next. Everything in a simulation hangs on one of these. */
export class World {
  /** Of everything that happens in it. */
  readonly digest = new Digest();
  readonly random: Readonly<Record<(typeof BRANCHES)[number], Random>>;
  readonly #events = new EventQueue();
  readonly #inOrder: OrderedDeliveries | undefined;
  #nowUs = 0;
  #steps = 0;
  #pipes = 0;

  /** @param order decides what arrives next; without one, each message takes its time */
  constructor(seed: number, order?: DeliveryOrder) {
    const source = new Random(seed);
    const [network, processes, faults] = BRANCHES.map((_, branch) => source.fork(branch + 1));
    this.random = { network: network!, processes: processes!, faults: faults! };
    this.#inOrder = order && new OrderedDeliveries(order);
  }

  /** Nobody in the world can read it. */
  get nowUs(): number {
    return this.#nowUs;
  }

  get nowMs(): number {
    return this.#nowUs / 1_000;
  }

  /** How late Node fires a timer, at the most, in µs; where an order decides, what is due at the same time happens at the same time. */
  get latestTimerUs(): number {
    return this.#inOrder === undefined ? LATE_US : 0;
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

  /** The number of a pipe that is new. */
  newPipe(): number {
    this.#pipes += 1;
    return this.#pipes;
  }

  /** A message that takes until then, unless an order decides. */
  deliver(atUs: number, delivery: Delivery): void {
    if (this.#inOrder === undefined) this.at(atUs, delivery.arrive);
    else this.#inOrder.add(delivery);
  }

  /** Until nothing is left to happen, or that time is over. Tells which. */
  run(untilUs: number): 'idle' | 'time is over' {
    settle();
    for (;;) {
      const step = this.step(untilUs);
      if (step !== 'happened') return step;
      settle();
    }
  }

  /**
   * The next event, without what promises bring about then. Where `settle` is not possible, as in a browser, the code that calls this waits for a
   * turn of the event loop between two steps: it is the same world.
   */
  step(untilUs: number): 'happened' | 'idle' | 'time is over' {
    const eventUs = this.#events.nextUs;
    const arrivalUs = this.#inOrder?.nextUs(this.#nowUs) ?? Infinity;
    const atUs = Math.min(eventUs, arrivalUs);
    if (atUs === Infinity) return 'idle';
    if (atUs > untilUs) return 'time is over';
    const happen =
      eventUs <= arrivalUs ? this.#events.take()!.callback! : this.#inOrder!.take(this.#nowUs);
    this.#nowUs = atUs;
    this.#steps += 1;
    happen();
    return 'happened';
  }
}
