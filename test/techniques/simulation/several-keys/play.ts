import { Random } from '../../faults/random.js';
import { World } from '../world/world.js';
import { Caller, Key } from './keys.js';
import type { Order } from './orders.js';

/** Who wants what, and for how long. */
export interface Shape {
  /** So long callers begin calls. */
  readonly lengthMs: number;
  readonly keys: number;
  readonly callers: number;
  /** Of a call. */
  readonly mostKeys: number;
  /** On average, as the pause between two calls. */
  readonly sectionMs: number;
  readonly pauseMs: number;
  /** The part of the calls that want one key. */
  readonly singles: number;
  /** Callers of one key that hold it for 2 to 15 s. */
  readonly longHolders: number;
  /** The part of the sections that ask for a lower key than their own. */
  readonly nested: number;
  /** Callers freeze now and then, for up to 15 s. */
  readonly frozen: boolean;
}

export interface Played {
  /** Those that had all of their keys to the end. */
  sections: number;
  ofSeveral: number;
  /** Calls that wait long after all others have ended. */
  waiting: number;
}

export function shapeOf(seed: number): Shape {
  const random = new Random(seed);
  const sectionMs = random.pick([2, 20, 100, 300]);
  return {
    lengthMs: sectionMs < 20 ? 20_000 : 120_000,
    keys: random.pick([2, 3, 5, 10, 30]),
    callers: random.pick([2, 5, 10, 20, 40]),
    mostKeys: random.between(2, 4),
    sectionMs,
    pauseMs: random.pick([0, 10, 100, 1_000]),
    singles: random.pick([0, 0.3, 0.7]),
    longHolders: random.pick([0, 0, 1, 2]),
    nested: random.pick([0, 0, 0.2]),
    frozen: random.chance(0.3),
  };
}

const DRAIN_MS = 120_000;

export function play(order: Order, shape: Shape, seed: number): Played {
  const world = new World(seed);
  const source = new Random(seed);
  const keys = Array.from({ length: shape.keys }, (_, name) => new Key(world, name));
  const played: Played = { sections: 0, ofSeveral: 0, waiting: 0 };
  const isOver = (): boolean => world.nowMs >= shape.lengthMs;

  async function call(caller: Caller, wanted: readonly Key[], random: Random, workMs: number) {
    played.waiting += 1;
    const grants = await order(caller, wanted);
    played.waiting -= 1;
    const lower = keys.slice(0, wanted[0]!.name);
    if (lower.length > 0 && random.chance(shape.nested)) {
      played.waiting += 1;
      const inner = await caller.wait(random.pick(lower));
      played.waiting -= 1;
      await caller.sleep(workMs);
      caller.giveBack([inner!]);
    }
    await caller.sleep(workMs);
    if (grants.every((grant) => grant.key.grant === grant) && !isOver()) {
      played.sections += 1;
      if (wanted.length > 1) played.ofSeveral += 1;
    }
    caller.giveBack(grants);
  }

  async function calls(caller: Caller, random: Random) {
    while (!isOver()) {
      const several = random.between(2, Math.min(shape.mostKeys, keys.length));
      const size = random.chance(shape.singles) ? 1 : several;
      const wanted = random.sample(keys, size).toSorted((one, other) => one.name - other.name);
      await call(caller, wanted, random, random.fraction() * 2 * shape.sectionMs);
      await caller.sleep(random.fraction() * 2 * shape.pauseMs);
    }
  }

  async function holdsLong(caller: Caller, random: Random) {
    while (!isOver()) {
      await caller.sleep(random.between(100, 5_000));
      const grant = await caller.wait(random.pick(keys));
      await caller.sleep(random.between(2_000, 15_000));
      caller.giveBack([grant!]);
    }
  }

  function freezes(caller: Caller, random: Random): void {
    world.in(random.between(1, 40_000) * 1_000, () => {
      if (isOver()) return;
      caller.freeze(random.between(200, 15_000));
      freezes(caller, random);
    });
  }

  for (let index = 0; index < shape.callers + shape.longHolders; index += 1) {
    const caller = new Caller(world);
    const random = source.fork(index + 1);
    void (index < shape.callers ? calls(caller, random) : holdsLong(caller, random));
    if (shape.frozen && index < shape.callers) freezes(caller, source.fork(1_000 + index));
  }
  world.run((shape.lengthMs + DRAIN_MS) * 1_000);
  return played;
}
