import type { LockDriver } from 'nestjs-holdfast';

/** The leases of several drivers of one process. */
export type Leases = Map<string, { readonly token: string; readonly untilMs: number }>;

/** A driver as a user would write it, on a Map. */
export class MemoryDriver implements LockDriver {
  constructor(
    protected readonly leases: Leases = new Map(),
    private readonly now: () => number = () => performance.now(),
  ) {}

  async acquire(key: string, token: string, ttlMs: number) {
    const lease = this.#of(key);
    if (lease !== undefined && lease.token !== token)
      return { status: 'held', remainingMs: lease.untilMs - this.now() } as const;
    this.leases.set(key, { token, untilMs: this.now() + ttlMs });
    return { status: 'acquired' } as const;
  }

  async extend(key: string, token: string, ttlMs: number) {
    if (this.#of(key)?.token !== token) return { status: 'lost' } as const;
    this.leases.set(key, { token, untilMs: this.now() + ttlMs });
    return { status: 'extended' } as const;
  }

  async release(key: string, token: string) {
    if (this.#of(key)?.token !== token) return { status: 'not-held' } as const;
    this.leases.delete(key);
    return { status: 'released' } as const;
  }

  #of(key: string) {
    const lease = this.leases.get(key);
    return lease !== undefined && lease.untilMs > this.now() ? lease : undefined;
  }
}
