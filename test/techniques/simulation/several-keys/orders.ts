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
  /** Whether a process holds nothing while it waits for a key that it has seen held for longer before. */
  readonly remembers: boolean;
}

export const RULE: Limits = { firstMs: 100, longestMs: 1_000, remembers: true };

/**
 * One after the other, holding earlier keys only for a short time while a later one is busy. Then all are given back, and
 * the busy one is waited for alone.
 */
export const brief =
  ({ firstMs, longestMs, remembers }: Limits = RULE): Order =>
  async (caller, keys) => {
    let grants = await caller.tryAll(keys);
    for (let round = 0; !grants?.every(isHeld); round += 1) {
      if (grants !== undefined) caller.giveBack(grants);
      caller.limitMs = Math.min(firstMs * 2 ** round, longestMs);
      const { held, busy } = await inOrder(caller, keys, { limitMs: caller.limitMs, remembers });
      grants = busy === undefined ? held : await busyFirst(caller, keys, { busy, held, firstMs });
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
  { limitMs, remembers }: { readonly limitMs: number; readonly remembers: boolean },
): Promise<Found> {
  const held: Grant[] = [];
  for (const [index, key] of keys.entries()) {
    const [first] = held;
    const askedMs = caller.nowMs;
    const isSlow = remembers && caller.slow.has(key);
    const withinMs = first && (isSlow ? 0 : first.sinceMs + limitMs - askedMs);
    const grant = await caller.wait(
      key,
      withinMs === undefined ? undefined : { withinMs, unlessHeldMs: limitMs },
    );
    if (grant === undefined) {
      if (key.heldMs >= limitMs) caller.slow.add(key);
      return { held, busy: key };
    }
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
  {
    busy,
    held,
    firstMs,
  }: { readonly busy: Key; readonly held: readonly Grant[]; readonly firstMs: number },
): Promise<readonly Grant[] | undefined> {
  caller.giveBack(held);
  const sinceMs = caller.nowMs;
  const grant = await caller.wait(busy);
  if (caller.nowMs - sinceMs < firstMs) caller.slow.delete(busy);
  const others = await caller.tryAll(keys.filter((key) => key !== busy));
  if (others !== undefined) return [grant!, ...others];
  caller.giveBack([grant!]);
  return undefined;
}

const isHeld = (grant: Grant): boolean => grant.key.grant === grant;
