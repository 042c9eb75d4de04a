import type { Clock } from '../time/clock.js';
import type { ResolvedOptions } from '../options/resolve-options.js';
import { GuardedStore } from './guarded-store.js';
import type { LockStore } from './lock-store.js';
import { MemoryLockStore } from './memory/memory-lock-store.js';
import { RedisLockStore } from './redis/quorum/redis-lock-store.js';

/** A store that can say of itself how it is. */
export type OpenStore = LockStore & Required<Pick<LockStore, 'open' | 'health'>>;

/** The store that the options ask for, held to the port's contract. */
export function createStore(
  options: ResolvedOptions,
  clock: Clock,
  warn: (message: string) => void,
): OpenStore {
  const { location } = options;
  if (location.kind === 'store') return new GuardedStore(location.store);
  if (location.kind === 'memory') return new GuardedStore(new MemoryLockStore(clock));
  const { keyPrefix, nodeTimeoutMs, fenceKeepMs, restartGuard, replicas, turns } = options;
  const { redis } = location;
  const store = new RedisLockStore({
    redis,
    keyPrefix,
    nodeTimeoutMs,
    fenceKeepMs,
    restartGuard,
    replicas,
    turns,
    warn,
    clock,
  });
  return new GuardedStore(store);
}
