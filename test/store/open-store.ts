import {
  RedisLockStore,
  type RedisLockStoreOptions,
} from '../../lib/store/redis/redis-lock-store.js';
import type { AcquireRequest } from '../../lib/store/lock-store.js';
import { newOwnerToken } from '../../lib/store/owner-token.js';

/** A Redis store with what it warned of. */
export interface OpenStore {
  readonly store: RedisLockStore;
  readonly warnings: readonly string[];
}

/** Opens a store with the library's defaults. */
export async function openStore(
  options: Pick<RedisLockStoreOptions, 'redis'> & Partial<RedisLockStoreOptions>,
): Promise<OpenStore> {
  const warnings: string[] = [];
  const store = new RedisLockStore({
    keyPrefix: 'lock:',
    nodeTimeoutMs: 1_000,
    fenceKeepMs: 600_000,
    warn: (message) => warnings.push(message),
    ...options,
  });
  await store.open();
  return { store, warnings };
}

/** What the queue asks a store for. */
export const request = (
  keys: string | readonly string[],
  { ttlMs = 30_000, standInLine = false, token = newOwnerToken() }: Partial<AcquireRequest> = {},
): AcquireRequest => ({
  keys: typeof keys === 'string' ? [keys] : keys,
  token,
  ttlMs,
  standInLine,
});
