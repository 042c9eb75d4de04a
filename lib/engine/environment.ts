import type { ResolvedOptions } from '../options/resolve-options.js';
import { MemoryLockStore } from '../store/memory/memory-lock-store.js';

const environment = (): string => process.env.NODE_ENV ?? '';

/** Whether mistakes of the application should be looked for and logged. */
export const isDevelopment = (): boolean => !['production', 'test'].includes(environment());

/** What is wrong with where locks are kept, although they are granted. */
export function storeWarning({ location }: ResolvedOptions): string | undefined {
  const isMemory =
    location.kind === 'memory' ||
    (location.kind === 'store' && location.store instanceof MemoryLockStore);
  if (!isMemory || environment() !== 'production') return undefined;
  return (
    'Locks are kept in the memory of this process only, and NODE_ENV is "production": a second process would get the same lock at the same ' +
    'time. Give redis: \'redis://…\' instead of "store".'
  );
}
