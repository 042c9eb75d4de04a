import type { Runtime } from '../time/runtime.js';
import type { ResolvedOptions } from '../options/resolve-options.js';
import { DriverStore } from '../store/driver/driver-store.js';
import type { LeaseStore, LockStore } from '../store/lock-store.js';
import { MemoryLockStore } from '../store/memory/memory-lock-store.js';
import { RedisLockStore } from '../store/redis/quorum/redis-lock-store.js';

/** The store that the options ask for. */
export function createStore(
  options: ResolvedOptions,
  runtime: Runtime,
  warn: (message: string) => void,
): LockStore {
  const { location } = options;
  if (location.kind === 'store') return location.store;
  if (location.kind === 'memory') return new MemoryLockStore(runtime);
  const { keyPrefix, nodeTimeoutMs, clockDrift, fenceKeepMs } = options;
  if (location.kind === 'driver')
    return ofDriver(
      new DriverStore({ driver: location.driver, keyPrefix, nodeTimeoutMs, runtime }),
    );
  const { credentials, restartGuard, replicas, turns } = options;
  const { redis } = location;
  return new RedisLockStore({
    redis,
    credentials,
    keyPrefix,
    nodeTimeoutMs,
    clockDrift,
    fenceKeepMs,
    restartGuard,
    replicas,
    turns,
    warn,
    runtime,
  });
}

/** What only the other stores can do is not asked of it: `needsOneRedis` and `needsRedis` refuse those calls. */
const ofDriver = (store: LeaseStore): LockStore => store as LockStore;
