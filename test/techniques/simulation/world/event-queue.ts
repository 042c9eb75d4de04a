/** An event that is still to come, unless it was cancelled. */
export interface Event {
  readonly atUs: number;
  readonly phase: Phase;
  readonly order: number;
  /** `undefined` when it was cancelled. */
  callback: (() => void) | undefined;
}

/** Of one moment, everything else comes before what waits until input has been read. */
export enum Phase {
  Usual = 0,
  AfterInput = 1,
}

/** Events by time, and of one time in the order in which they were scheduled: a binary heap. */
export class EventQueue {
  readonly #heap: Event[] = [];
  #order = 0;

  add(atUs: number, callback: () => void, phase = Phase.Usual): Event {
    const heap = this.#heap;
    this.#order += 1;
    const event: Event = { atUs, phase, order: this.#order, callback };
    let index = heap.length;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent]!;
      if (!isBefore(event, above)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = event;
    return event;
  }

  /** When the next event is that was not cancelled; `Infinity` if there is none. */
  get nextUs(): number {
    for (;;) {
      const [first] = this.#heap;
      if (first === undefined) return Infinity;
      if (first.callback !== undefined) return first.atUs;
      this.#removeFirst();
    }
  }

  /** The next event that was not cancelled. */
  take(): Event | undefined {
    if (this.nextUs === Infinity) return undefined;
    const [first] = this.#heap;
    this.#removeFirst();
    return first;
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    const size = heap.length;
    if (size === 0) return;
    let index = 0;
    for (let child = 1; child < size; child = 2 * index + 1) {
      if (child + 1 < size && isBefore(heap[child + 1]!, heap[child]!)) child += 1;
      if (!isBefore(heap[child]!, last)) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = last;
  }
}

function isBefore(one: Event, other: Event): boolean {
  if (one.atUs !== other.atUs) return one.atUs < other.atUs;
  return one.phase === other.phase ? one.order < other.order : one.phase < other.phase;
}
