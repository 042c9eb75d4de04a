import type { Clock } from '../time/clock.js';
import type { ResolvedOptions } from '../options/resolve-options.js';
import type { LockStore } from './lock-store.js';
import { MemoryLockStore } from './memory/memory-lock-store.js';
import { RedisLockStore } from './redis/redis-lock-store.js';

/** The store that the options ask for. */
export function createStore(
  options: ResolvedOptions,
  clock: Clock,
  warn: (message: string) => void,
): LockStore {
  const { location } = options;
  if (location.kind === 'store') return location.store;
  if (location.kind === 'memory') return new MemoryLockStore(clock);
  const { keyPrefix, nodeTimeoutMs, fenceKeepMs, restartGuard, replicas, turns } = options;
  const { redis } = location;
  return new RedisLockStore({
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
}
