import type { Runtime } from '../time/runtime.js';
import type { ResolvedOptions } from '../options/resolve-options.js';
import { DriverStore } from '../store/driver/driver-store.js';
import { GuardedStore } from '../store/guarded-store.js';
import type { LockStore } from '../store/lock-store.js';
import { MemoryLockStore } from '../store/memory/memory-lock-store.js';
import { RedisLockStore } from '../store/redis/quorum/redis-lock-store.js';

/** A store that reports its own health. */
export type OpenStore = LockStore & Required<Pick<LockStore, 'open' | 'health'>>;

/** The store that the options ask for, held to the port's contract. */
export function createStore(
  options: ResolvedOptions,
  runtime: Runtime,
  warn: (message: string) => void,
): OpenStore {
  const { location } = options;
  if (location.kind === 'store') return new GuardedStore(location.store, runtime);
  if (location.kind === 'memory') return new GuardedStore(new MemoryLockStore(runtime), runtime);
  const { keyPrefix, nodeTimeoutMs, clockDrift, fenceKeepMs } = options;
  if (location.kind === 'driver')
    return new DriverStore({ driver: location.driver, keyPrefix, nodeTimeoutMs, runtime });
  const { credentials, restartGuard, replicas, turns } = options;
  const { redis } = location;
  const store = new RedisLockStore({
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
  return new GuardedStore(store, runtime);
}
