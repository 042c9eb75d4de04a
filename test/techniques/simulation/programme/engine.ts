import type { EngineContext } from '../../../../lib/engine/compose.js';
import { LockEngine } from '../../../../lib/engine/lock-engine.js';
import { redisLockStore } from '../../../../lib/store/redis/redis-lock-store.js';
import type { ServicePlan } from '../scenario.js';
import type { Network } from '../world/network.js';
import { SimSource } from '../world/sim-client.js';
import type { SimProcess } from '../world/sim-process.js';
import type { SimDriver } from './sim-driver.js';
import { storeOption } from '../../../../lib/options/location.js';

const FENCE_KEPT_MS = 600_000;

const KEY_PREFIX = 'lock:';

export interface EngineOptions {
  readonly process: SimProcess;
  readonly network: Network;
  /** Of the servers. */
  readonly addresses: readonly string[];
  readonly service: ServicePlan;
  readonly handoff: boolean;
  /** Keeps the locks instead of Redis. */
  readonly driver?: SimDriver | undefined;
  /** Whether servers that were never seen before are new ones. */
  readonly isFirst: boolean;
}

/** The library, in a simulated process, on servers of a simulated network. */
export function engineOf(options: EngineOptions, surroundings: EngineContext): LockEngine {
  const { service, handoff, driver } = options;
  const { nodeTimeoutMs, clockDrift, shutdownTimeoutMs } = service;
  const store = driver ?? storeOption(redisStoreOf(options, surroundings));
  return new LockEngine(
    {
      ...{ store, clockDrift, nodeTimeout: nodeTimeoutMs, shutdownTimeout: shutdownTimeoutMs },
      handoff: handoff ? {} : false,
      ...(driver && { keyPrefix: KEY_PREFIX }),
    },
    surroundings,
  );
}

function redisStoreOf(
  { process, network, addresses, service, isFirst }: EngineOptions,
  surroundings: EngineContext,
) {
  const { nodeTimeoutMs, restartGuard, replicas } = service;
  return redisLockStore({
    redis: addresses.map((host) => ({ host })),
    keyPrefix: KEY_PREFIX,
    nodeTimeoutMs,
    fenceKeepMs: FENCE_KEPT_MS,
    restartGuard: restartGuard && { ...restartGuard, bootstrap: isFirst },
    replicas,
    warn: (message) => {
      surroundings.log.warn(message);
    },
    runtime: process.runtime,
    sourceOf: (location) =>
      new SimSource(process, network, (location as { readonly host: string }).host, service.client),
  });
}
