/** A message on its way: the first of its pipe, so that it may be the next to arrive. */
export interface Delivery {
  /** The number of its pipe. Pipes are made in the same order in worlds that have gone the same way. */
  readonly pipe: number;
  /** The process or the server at its end. */
  readonly to: string;
  readonly arrive: () => void;
}

/** Decides what arrives next, where that is not left to how long each message takes. */
export interface DeliveryOrder {
  /** Called with at least one; answers with one of them. */
  next(heads: readonly Delivery[]): Delivery;
}

/** From then on an order decides. Before, all messages arrive at once, so that processes which start together are ready together. In µs. */
const DECIDES_FROM_US = 20_000;

/** So long after the one before it each message arrives, in µs. */
const STEP_US = 100;

/** The messages on their way in a world in which an order decides. */
export class OrderedDeliveries {
  readonly #order: DeliveryOrder;
  readonly #pipes = new Map<number, Delivery[]>();

  constructor(order: DeliveryOrder) {
    this.#order = order;
  }

  add(delivery: Delivery): void {
    const pipe = this.#pipes.get(delivery.pipe);
    if (pipe === undefined) this.#pipes.set(delivery.pipe, [delivery]);
    else pipe.push(delivery);
  }

  /** When the next one arrives; `Infinity` when nothing is on its way. */
  nextUs(nowUs: number): number {
    if (this.#pipes.size === 0) return Infinity;
    return nowUs < DECIDES_FROM_US ? nowUs : nowUs + STEP_US;
  }

  take(nowUs: number): () => void {
    const heads = [...this.#pipes.values()].map(([head]) => head!);
    const chosen = nowUs < DECIDES_FROM_US ? heads[0]! : this.#order.next(heads);
    const pipe = this.#pipes.get(chosen.pipe)!;
    pipe.shift();
    if (pipe.length === 0) this.#pipes.delete(chosen.pipe);
    return chosen.arrive;
  }
}
