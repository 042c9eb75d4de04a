import type { EngineContext } from '../../../../lib/engine/compose.js';
import { LockEngine } from '../../../../lib/engine/lock-engine.js';
import { redisLockStore } from '../../../../lib/store/redis/redis-lock-store.js';
import type { ServicePlan } from '../scenario.js';
import type { Network } from '../world/network.js';
import { SimSource } from '../world/sim-client.js';
import type { SimProcess } from '../world/sim-process.js';
import { storeOption } from '../../../../lib/options/location.js';

const FENCE_KEPT_MS = 600_000;

export interface EngineOptions {
  readonly process: SimProcess;
  readonly network: Network;
  /** Of the servers. */
  readonly addresses: readonly string[];
  readonly service: ServicePlan;
  readonly handoff: boolean;
  /** Whether servers that were never seen before are new ones. */
  readonly isFirst: boolean;
}

/** The library, in a simulated process, on servers of a simulated network. */
export function engineOf(
  { process, network, addresses, service, handoff, isFirst }: EngineOptions,
  surroundings: EngineContext,
): LockEngine {
  const { nodeTimeoutMs, clockDrift, shutdownTimeoutMs, restartGuard, replicas } = service;
  const store = redisLockStore({
    redis: addresses.map((host) => ({ host })),
    keyPrefix: 'lock:',
    nodeTimeoutMs,
    fenceKeepMs: FENCE_KEPT_MS,
    restartGuard: restartGuard && { ...restartGuard, bootstrap: isFirst },
    replicas,
    warn: (message) => {
      surroundings.log.warn(message);
    },
    runtime: process.runtime,
    sourceOf: (location) =>
      new SimSource(process, network, (location as { readonly host: string }).host),
  });
  const options = { store: storeOption(store), clockDrift, nodeTimeout: nodeTimeoutMs };
  return new LockEngine(
    { ...options, shutdownTimeout: shutdownTimeoutMs, handoff: handoff ? {} : false },
    surroundings,
  );
}
