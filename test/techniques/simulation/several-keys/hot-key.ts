import { World } from '../world/world.js';
import { Caller, Key } from './keys.js';
import type { Order } from './orders.js';

const LENGTH_MS = 60_000;
const ASKS_EVERY_MS = 7;
const SECTION_MS = 20;
/** Jobs do not begin together, unless they last throughout. */
const JOB_STEP_MS = 997;

export interface Around {
  /** Each wants the hot key and a cold key of its own. */
  readonly waiters: number;
  /** So long a job holds a cold key; then the waiter has it, and the next job waits. */
  readonly jobMs: number;
  /** Whether the hot key comes before the cold ones in canonical order. */
  readonly isHotFirst: boolean;
  /** The waiters come one by one, so long after each other. */
  readonly everyMs?: number;
}

/** The part of the calls for the hot key alone that get it at once, from the moment when the first waiter has come. */
export function grantedPart(
  order: Order,
  { waiters, jobMs, isHotFirst, everyMs = 0 }: Around,
): number {
  const world = new World(1);
  const hot = new Key(world, isHotFirst ? -1 : waiters);
  let [asked, granted] = [0, 0];

  async function asks(caller: Caller) {
    for (;;) {
      await caller.sleep(ASKS_EVERY_MS);
      const grants = await caller.tryAll([hot]);
      asked += 1;
      if (grants === undefined) continue;
      granted += 1;
      caller.giveBack(grants);
    }
  }

  async function works(caller: Caller, cold: Key, index: number) {
    await caller.sleep(jobMs < LENGTH_MS ? (index * JOB_STEP_MS) % jobMs : 0);
    for (;;) {
      const grant = await caller.wait(cold);
      await caller.sleep(jobMs);
      caller.giveBack([grant!]);
    }
  }

  async function wantsBoth(caller: Caller, cold: Key, afterMs: number) {
    await caller.sleep(afterMs);
    for (;;) {
      const grants = await order(caller, isHotFirst ? [hot, cold] : [cold, hot]);
      await caller.sleep(SECTION_MS);
      caller.giveBack(grants);
    }
  }

  for (let index = 0; index < waiters; index += 1) {
    const cold = new Key(world, index);
    void works(new Caller(world), cold, index);
    void wantsBoth(new Caller(world), cold, 10 + index * everyMs);
  }
  void asks(new Caller(world));
  world.run(LENGTH_MS * 1_000);
  return granted / asked;
}
