import {
  redisLockStore,
  type RedisLockStoreOptions,
} from '../../lib/store/redis/redis-lock-store.js';
import type {
  AcquireRequest,
  LeaseRenewal,
  LinePlace,
  LockStore,
} from '../../lib/store/lock-store.js';
import type { RedisLocation } from '../../lib/store/redis/client/redis-location.js';
import { newOwnerToken } from '../../lib/store/owner-token.js';
import { systemRuntime } from '../../lib/time/runtime.js';

/** A Redis store with what it warned of. */
export interface OpenStore {
  readonly store: LockStore;
  readonly warnings: readonly string[];
}

type OpenStoreOptions = Partial<Omit<RedisLockStoreOptions, 'redis'>> & {
  readonly redis: RedisLocation | readonly RedisLocation[];
};

/** Opens a store with the library's defaults. */
export async function openStore({ redis, ...options }: OpenStoreOptions): Promise<OpenStore> {
  const warnings: string[] = [];
  const store = redisLockStore({
    keyPrefix: 'lock:',
    nodeTimeoutMs: 1_000,
    fenceKeepMs: 600_000,
    warn: (message) => warnings.push(message),
    redis: Array.isArray(redis) ? redis : [redis as RedisLocation],
    ...options,
  });
  await store.open();
  return { store, warnings };
}

/** What the queue asks a store for; as a renewal, of a lease that was granted long before every other. */
export const request = (
  keys: string | readonly string[],
  { ttlMs = 30_000, line, token = newOwnerToken(systemRuntime) }: Partial<AcquireRequest> = {},
): AcquireRequest & LeaseRenewal => ({
  keys: typeof keys === 'string' ? [keys] : keys,
  token,
  ttlMs,
  line,
  fencingToken: 1,
  validForMs: ttlMs,
});

/** For how many ms a key is held yet; 0 if it is free. */
export async function heldMs({ admin }: Pick<LockStore, 'admin'>, key: string): Promise<number> {
  const [found] = await admin.look([key]);
  return Math.max(0, ...(found?.holders ?? []).map(({ remainingMs }) => remainingMs));
}

/** Ends whatever lease holds a key, as operators do. Returns how many there were. */
export async function endHolders(
  store: Pick<LockStore, 'admin' | 'release'>,
  key: string,
): Promise<number> {
  const [found] = await store.admin.look([key]);
  const { holders = [], fencingToken } = found ?? {};
  for (const { token, remainingMs: ttlMs } of holders)
    await store.release({ keys: [key], token, ttlMs }, fencingToken);
  return holders.length;
}

/** Of the only line of a process. */
export const LINE: LinePlace = { id: 'line', ttlMs: 30_000 };
