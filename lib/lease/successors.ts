import type { Instant } from '../time/clock.js';
import type { Lease } from './lease.js';

/** The callers after a lease, as far as the lease has to know them. */
export interface Successors {
  /**
   * Passes a lease that its holder releases to the next caller of this process that waits for it. Returns whether there
   * was one.
   */
  passOn(lease: Lease, now: Instant): boolean;
  /** The keys were released, or may have been. Callers that wait for one of them ask the store again. */
  wake(keys: readonly string[]): void;
}
