import { TRIP_MS, type Caller, type Grant, type Key } from './keys.js';

/** How a call gets several keys, which stand in canonical order. */
export type Order = (caller: Caller, keys: readonly Key[]) => Promise<readonly Grant[]>;

/** One after the other, holding each for as long as the next one takes. */
export const plain: Order = async (caller, keys) => {
  for (;;) {
    const grants: Grant[] = [...((await caller.tryAll(keys)) ?? [])];
    for (const key of keys.slice(grants.length)) {
      const grant = await caller.wait(key);
      if (grant !== undefined) grants.push(grant);
    }
    if (grants.every(isHeld)) return grants;
    caller.giveBack(grants);
  }
};

/** For how long a call holds earlier keys while a later one is busy: twice as long each round. */
interface Limits {
  readonly firstMs: number;
  readonly longestMs: number;
  /** Whether the holder of the busy key counts alone (0), or also the last one or two before it. */
  readonly lookBack: number;
}

export const STATED: Limits = { firstMs: 100, longestMs: 1_000, lookBack: 0 };

/**
 * One after the other, holding earlier keys only for a short time while a later one is busy. Then all are given back, and
 * the busy one is waited for alone.
 */
export const brief =
  ({ firstMs, longestMs, lookBack }: Limits = STATED): Order =>
  async (caller, keys) => {
    let grants = await caller.tryAll(keys);
    for (let round = 0; !grants?.every(isHeld); round += 1) {
      if (grants !== undefined) caller.giveBack(grants);
      caller.limitMs = Math.min(firstMs * 2 ** round, longestMs);
      const { held, busy } = await inOrder(caller, keys, { limitMs: caller.limitMs, lookBack });
      grants = busy === undefined ? held : await busyFirst(caller, keys, busy, held);
    }
    caller.limitMs = undefined;
    return grants;
  };

interface Found {
  readonly held: readonly Grant[];
  /** The key that would have had to be waited for. */
  readonly busy?: Key;
}

async function inOrder(
  caller: Caller,
  keys: readonly Key[],
  { limitMs, lookBack }: { readonly limitMs: number; readonly lookBack: number },
): Promise<Found> {
  const held: Grant[] = [];
  for (const [index, key] of keys.entries()) {
    const [first] = held;
    const askedMs = caller.nowMs;
    const grant = await caller.wait(
      key,
      first && { withinMs: first.sinceMs + limitMs - askedMs, unlessHeldMs: limitMs, lookBack },
    );
    if (grant === undefined) return { held, busy: key };
    held.push(grant);
    const rest = keys.slice(index + 1);
    const hasWaited = caller.nowMs - askedMs > TRIP_MS;
    const others = hasWaited && rest.length > 1 ? await caller.tryAll(rest) : undefined;
    if (others !== undefined) return { held: [...held, ...others] };
  }
  return { held };
}

/** It never waits for an earlier key while it holds a later one. */
async function busyFirst(
  caller: Caller,
  keys: readonly Key[],
  busy: Key,
  held: readonly Grant[],
): Promise<readonly Grant[] | undefined> {
  caller.giveBack(held);
  const grant = await caller.wait(busy);
  const others = await caller.tryAll(keys.filter((key) => key !== busy));
  if (others !== undefined) return [grant!, ...others];
  caller.giveBack([grant!]);
  return undefined;
}

const isHeld = (grant: Grant): boolean => grant.key.grant === grant;
