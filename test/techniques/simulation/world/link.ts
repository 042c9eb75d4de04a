import type { World } from './world.js';

/** What the way between a process and a server is like. */
export interface LinkPlan {
  readonly latencyUs: number;
  /** Up to so much longer, by chance. */
  readonly jitterUs: number;
  /** The part of all packets that is lost. TCP sends them again, and what was sent after them waits. Default 0. */
  readonly lossRate?: number;
}

export type Direction = 'to server' | 'to process';

/** Who is at the ends of a link. */
export type Ends = Readonly<Record<Direction, string>>;

export const BOTH: readonly Direction[] = ['to server', 'to process'];

/** Until TCP sends again what was lost while the way was cut. */
const LONGEST_RESEND_US = 200_000;

/** Until it sends again what was lost on a way that is whole: the least that Linux waits (`TCP_RTO_MIN`). */
const LEAST_RESEND_US = 200_000;

/** A connection over a link. */
export interface Breakable {
  readonly isOpen: boolean;
  stall(): void;
  reset(): void;
}

/** The way between one process and one server, for all of their connections. */
export class Link {
  readonly ends: Ends;
  readonly #world: World;
  readonly #plan: LinkPlan;
  readonly #cuts = new Map<Direction, number>();
  readonly #waiting = new Set<Pipe>();
  readonly connections = new Set<Breakable>();
  /** While it is slow. */
  extraUs = 0;

  constructor(world: World, plan: LinkPlan, ends: Ends) {
    this.#world = world;
    this.#plan = plan;
    this.ends = ends;
  }

  isCut(direction: Direction): boolean {
    return (this.#cuts.get(direction) ?? 0) > 0;
  }

  /** What is sent from now on waits. Cuts add up. */
  cut(directions: readonly Direction[]): void {
    for (const direction of directions)
      this.#cuts.set(direction, (this.#cuts.get(direction) ?? 0) + 1);
  }

  heal(directions: readonly Direction[]): void {
    for (const direction of directions)
      this.#cuts.set(direction, (this.#cuts.get(direction) ?? 0) - 1);
    for (const pipe of [...this.#waiting]) if (pipe.sendAgain()) this.#waiting.delete(pipe);
  }

  pipe(direction: Direction): Pipe {
    return new Pipe(this.#world, this, direction);
  }

  delayUs(): number {
    const { latencyUs, jitterUs, lossRate = 0 } = this.#plan;
    const { network } = this.#world.random;
    const usualUs = latencyUs + this.extraUs + jitterUs * network.fraction();
    const isLost = lossRate > 0 && network.chance(lossRate);
    return isLost ? usualUs + LEAST_RESEND_US : usualUs;
  }

  waits(pipe: Pipe): void {
    this.#waiting.add(pipe);
  }
}

/** One direction of one connection: what is sent arrives in its order, or not at all. */
export class Pipe {
  readonly #world: World;
  readonly #link: Link;
  readonly #direction: Direction;
  readonly #number: number;
  #held: (() => void)[] = [];
  #lastArrivalUs = 0;
  #state: 'open' | 'stalled' | 'broken' = 'open';

  constructor(world: World, link: Link, direction: Direction) {
    this.#world = world;
    this.#link = link;
    this.#direction = direction;
    this.#number = world.newPipe();
  }

  send(arrive: () => void): void {
    if (this.#state !== 'open') return;
    if (this.#held.length > 0 || this.#link.isCut(this.#direction)) {
      this.#held.push(arrive);
      this.#link.waits(this);
      return;
    }
    this.#travel(arrive, this.#link.delayUs());
  }

  /** The way may be whole again. Tells whether nothing is held back any more. */
  sendAgain(): boolean {
    if (this.#link.isCut(this.#direction)) return false;
    const held = this.#held;
    this.#held = [];
    const { network } = this.#world.random;
    const resendUs = held.length === 0 ? 0 : LONGEST_RESEND_US * network.fraction();
    for (const arrive of held) this.#travel(arrive, resendUs + this.#link.delayUs());
    return true;
  }

  /** Nothing comes through any more, and neither end notices: a router in between has forgotten the connection. */
  stall(): void {
    if (this.#state === 'open') this.#state = 'stalled';
  }

  /** What is on its way is lost. */
  break(): void {
    this.#state = 'broken';
    this.#held = [];
  }

  #travel(arrive: () => void, delayUs: number): void {
    const atUs = Math.max(this.#world.nowUs + Math.round(delayUs), this.#lastArrivalUs);
    this.#lastArrivalUs = atUs;
    this.#world.deliver(atUs, {
      pipe: this.#number,
      to: this.#link.ends[this.#direction],
      arrive: () => {
        if (this.#state !== 'broken') arrive();
      },
    });
  }
}
