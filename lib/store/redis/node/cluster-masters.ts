import type { Master, RedisClient } from '../client/redis-client.js';

const SLOTS_OF_A_CLUSTER = 16_384;

/** One master of a Cluster. */
export interface KnownMaster {
  readonly address: string;
  /** `undefined` while there is no connection to it. */
  readonly reachable: Master | undefined;
  /** Whether keys of that slot are its. */
  readonly serves: (slot: number) => boolean;
  readonly hasSlots: boolean;
}

/**
 * The masters of a Cluster: those that slots belong to, whether they are connected or not, and those without slots. None of any other kind
 * of Redis, nor before the Cluster is connected to. ioredis takes a master that it cannot connect to off its list.
 */
export function mastersOf(client: RedisClient): readonly KnownMaster[] {
  const connected = new Map(client.masters().map((master) => [master.address, master]));
  if (connected.size === 0) return [];
  const owners = new Set<string>();
  for (let slot = 0; slot < SLOTS_OF_A_CLUSTER; slot += 1) {
    const owner = client.ownerOf(slot);
    if (owner !== undefined) owners.add(owner);
  }
  return [...new Set([...connected.keys(), ...owners])].map((address) => ({
    address,
    reachable: connected.get(address),
    serves: (slot) => client.ownerOf(slot) === address,
    hasSlots: owners.has(address),
  }));
}
