import { BriefMap } from '../collections/brief-map.js';
import { PendingTasks } from '../time/pending-tasks.js';
import type { Lease } from './lease.js';

/** The leases of a service that have not ended. */
export class LeaseRegistry {
  readonly #byToken = new BriefMap<string, Lease>();
  /** The lease of a key; if several hold it together, the one that came last. */
  readonly #byKey = new BriefMap<string, Lease>();
  readonly #held = new PendingTasks();

  /** The oldest first. */
  get all(): readonly Lease[] {
    return [...this.#byToken.values()];
  }

  holderOf(key: string): Lease | undefined {
    return this.#byKey.get(key);
  }

  add(lease: Lease): void {
    if (!this.#byToken.has(lease.token)) this.#held.begin();
    this.#byToken.set(lease.token, lease);
    for (const key of lease.keys) this.#byKey.set(key, lease);
  }

  remove(lease: Lease): void {
    for (const key of lease.keys) if (this.#byKey.get(key) === lease) this.#byKey.delete(key);
    if (this.#byToken.delete(lease.token)) this.#held.end();
  }

  /** Resolves when there is none. */
  empty(): Promise<void> {
    return this.#held.settled();
  }
}
