import { BriefMap } from '../collections/brief-map.js';
import type { Lease } from './lease.js';

/** The leases of a service that have not ended. */
export class LeaseRegistry {
  readonly #byToken = new BriefMap<string, Lease>();
  /** The lease of a key; if several hold it together, the one that came last. */
  readonly #byKey = new BriefMap<string, Lease>();
  #whenEmpty: (() => void)[] = [];

  /** The oldest first. */
  get all(): readonly Lease[] {
    return [...this.#byToken.values()];
  }

  holderOf(key: string): Lease | undefined {
    return this.#byKey.get(key);
  }

  add(lease: Lease): void {
    this.#byToken.set(lease.token, lease);
    for (const key of lease.keys) this.#byKey.set(key, lease);
  }

  remove(lease: Lease): void {
    this.#byToken.delete(lease.token);
    for (const key of lease.keys) if (this.#byKey.get(key) === lease) this.#byKey.delete(key);
    if (this.#whenEmpty.length === 0 || this.#byToken.size > 0) return;
    for (const resolve of this.#whenEmpty.splice(0)) resolve();
  }

  /** Resolves when there is none. */
  async empty(): Promise<void> {
    while (this.#byToken.size > 0) {
      await new Promise<void>((resolve) => this.#whenEmpty.push(resolve));
    }
  }
}
