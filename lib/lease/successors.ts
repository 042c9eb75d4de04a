import type { Instant } from '../time/clock.js';
import type { Lease } from './lease.js';

/** Those who come after a lease, as far as the lease has to know them. */
export interface Successors {
  /** Gives a lease that its holder gives back to the next caller of this process who waits for it; answers whether there was one. */
  passOn(lease: Lease, now: Instant): boolean;
  /** Waits until a lease can be upgraded, in line before them. Rejects with the refusal, the loss, or the reason of `signal`. */
  upgrade(lease: Lease, waitMs: number, signal: AbortSignal | undefined): Promise<void>;
  /** The keys were released, or may have been: callers who wait for one of them look again. */
  wake(keys: readonly string[]): void;
}
