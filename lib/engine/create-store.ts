import type { Runtime } from '../time/runtime.js';
import type { ResolvedOptions } from '../options/resolve-options.js';
import { DriverStore } from '../store/driver/driver-store.js';
import type { LeaseStore, LockStore } from '../store/lock-store.js';
import { MemoryLockStore } from '../store/memory/memory-lock-store.js';
import { redisLockStore } from '../store/redis/redis-lock-store.js';

/** The store that the options ask for. */
export function createStore(
  options: ResolvedOptions,
  runtime: Runtime,
  warn: (message: string) => void,
): LockStore {
  const { location } = options;
  if (location.kind === 'store') return location.store;
  if (location.kind === 'memory') return new MemoryLockStore(runtime);
  if (location.kind === 'driver') {
    const store: LeaseStore = new DriverStore({ ...options, driver: location.driver, runtime });
    // What only the other stores can do is not asked of it: `needsOneRedis` and `needsRedis` refuse those calls.
    return store as LockStore;
  }
  return redisLockStore({ ...options, redis: location.redis, warn, runtime });
}
