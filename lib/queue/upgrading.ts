import type { LeaseKeeper } from '../lease/lease-keeper.js';
import type { Lease } from '../lease/lease.js';
import type { LockRequest } from './caller.js';
import { anyOf } from './on-abort.js';

interface UpgradeWait {
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  readonly keeper: LeaseKeeper;
  /** Asks as any caller that wants the exclusive lock. */
  readonly acquire: (request: LockRequest) => Promise<Lease>;
}

/**
 * Waits until an upgradeable lease can be upgraded. The end of the lease ends the wait. If the wait ends otherwise, the
 * lease stays as it was, even if the store granted the upgrade, or its outcome is unknown.
 */
export async function upgrade(lease: Lease, wait: UpgradeWait): Promise<void> {
  const { waitMs, keeper, acquire } = wait;
  const ending = new AbortController();
  const ends = anyOf([ending.signal, ...(wait.signal ? [wait.signal] : [])]);
  lease.upgrading = ending;
  const { keys, ttlMs, options, fencingToken } = lease;
  try {
    ends.signal.throwIfAborted();
    await acquire({
      ...options,
      keys,
      ttlMs,
      waitMs,
      signal: ends.signal,
      mode: 'exclusive',
      places: 1,
      upgrades: lease,
    });
  } catch (error) {
    await keeper.modes.stayUpgradeable(lease, fencingToken).catch(() => undefined); // it was lost: that is what is reported
    throw error;
  } finally {
    ends.unlink();
    lease.upgrading = undefined;
  }
}

/** Names the line of one lease. */
export const upgradeLineOf = ({ keys, token }: Lease): string => `${keys.join('\0')}\0\0${token}`;
