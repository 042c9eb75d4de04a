import { BriefMap } from '../../../collections/brief-map.js';
import type { Runtime } from '../../../time/runtime.js';
import type { LeaseRequest } from '../../lock-store.js';
import { SweepPace } from '../../sweep-pace.js';

/** From this number of granted leases on that were not released, those that have ended are removed. */
const FIRST_CROWD = 1_000;

/** A lease that a majority has, and that each voter should have. */
export interface Standing {
  /** As it was acquired or renewed last. */
  lease: LeaseRequest;
  /** The last fencing token that was used under it, as far as is known. */
  lastToken: number;
  /** By the monotonic clock: when it ends unless it is renewed. */
  untilMs: number;
  /** `'kept'`: it was released, and its keys stay taken until it ends. */
  state: 'held' | 'kept' | 'over';
  /** A request that puts it back may be on its way to a voter: only a release that changes the fence stops that one. */
  isBrought: boolean;
}

/** The leases that were granted by a majority and not released, by token. */
export class StandingLeases {
  readonly #runtime: Runtime;
  readonly #nodeTimeoutMs: number;
  readonly #held = new BriefMap<string, Standing>();
  readonly #pace = new SweepPace(FIRST_CROWD);

  constructor(runtime: Runtime, nodeTimeoutMs: number) {
    this.#runtime = runtime;
    this.#nodeTimeoutMs = nodeTimeoutMs;
  }

  get(token: string): Standing | undefined {
    return this.#held.get(token);
  }

  /** Not all leases are released: during a long outage callers give up. */
  add(standing: Standing): void {
    this.#held.set(standing.lease.token, standing);
    if (!this.#pace.isDue(this.#held.size)) return;
    // A renewal may prolong a lease here for so long after it would have ended: when all voters have replied.
    const endedBefore = this.#runtime.now().monotonicMs - 2 * this.#nodeTimeoutMs;
    for (const [token, { untilMs }] of this.#held) if (untilMs < endedBefore) this.end(token);
    this.#pace.swept(this.#held.size);
  }

  /** Returns what ends, if that is known. */
  end(token: string): Standing | undefined {
    const standing = this.#held.get(token);
    if (standing !== undefined) standing.state = 'over';
    this.#held.delete(token);
    return standing;
  }
}
