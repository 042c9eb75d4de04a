import { BriefMap } from '../collections/brief-map.js';
import { SweepPace } from '../store/sweep-pace.js';
import type { Runtime } from '../time/runtime.js';
import type { Lease } from './lease.js';

/** From this number of kept leases on, those whose keys are free by now are removed. */
const FIRST_CROWD = 1_000;

/** The leases of a service that have not ended, and those whose keys stay taken after their end. */
export class LeaseRegistry {
  readonly #runtime: Runtime;
  readonly #byToken = new BriefMap<string, Lease>();
  /** Of several that hold a key together, the one that came last. */
  readonly #byKey = new BriefMap<string, Lease>();
  /** By token: until when the keys stay taken, by the monotonic clock. */
  readonly #kept = new Map<string, number>();
  readonly #pace = new SweepPace(FIRST_CROWD);
  #whenEmpty: (() => void)[] = [];

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** The oldest first. */
  get all(): readonly Lease[] {
    return [...this.#byToken.values()];
  }

  /** Whether the store has keys for this token. */
  has(token: string): boolean {
    return this.#byToken.has(token) || (this.#kept.get(token) ?? 0) > this.#nowMs;
  }

  holderOf(key: string): Lease | undefined {
    return this.#byKey.get(key);
  }

  add(lease: Lease): void {
    this.#byToken.set(lease.token, lease);
    for (const key of lease.keys) this.#byKey.set(key, lease);
  }

  /** Its token changes. */
  rename(lease: Lease, change: () => void): void {
    const isKnown = this.#byToken.delete(lease.token);
    change();
    if (isKnown) this.#byToken.set(lease.token, lease);
  }

  remove(lease: Lease): void {
    this.#byToken.delete(lease.token);
    for (const key of lease.keys) if (this.#byKey.get(key) === lease) this.#byKey.delete(key);
    this.#keep(lease);
    if (this.#whenEmpty.length === 0 || this.#byToken.size > 0) return;
    for (const resolve of this.#whenEmpty.splice(0)) resolve();
  }

  #keep({ token, keepMs }: Lease): void {
    if (keepMs === 0) return;
    const nowMs = this.#nowMs;
    this.#kept.set(token, nowMs + keepMs);
    if (!this.#pace.isDue(this.#kept.size)) return;
    for (const [each, untilMs] of this.#kept) if (untilMs <= nowMs) this.#kept.delete(each);
    this.#pace.swept(this.#kept.size);
  }

  get #nowMs(): number {
    return this.#runtime.now().monotonicMs;
  }

  /** Resolves when there is none. */
  async empty(): Promise<void> {
    while (this.#byToken.size > 0) {
      await new Promise<void>((resolve) => this.#whenEmpty.push(resolve));
    }
  }
}
