import type { StoreHealth } from './lock-store.js';

/** The health of a store that grants no locks, and that tells nothing of its servers. */
export const unhealthy = (problem: string | undefined): StoreHealth => ({
  nodes: [{ node: 'store', reachable: false, quarantinedForMs: 0, problem }],
  quorum: 1,
  hasQuorum: false,
});
