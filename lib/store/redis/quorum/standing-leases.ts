import { AsyncResource } from 'node:async_hooks';
import { BriefMap } from '../../../collections/brief-map.js';
import type { CancelTimer } from '../../../time/clock.js';
import type { Runtime } from '../../../time/runtime.js';
import type { LeaseRequest } from '../../lock-store.js';

/** A renewal after a third of the TTL comes first. */
const RENEWED_WITHIN_MS = 50;

/** Leases are looked through no more often than this, in ms. */
const PAUSE_MS = 20;

/** A lease that a majority has, and that each voter should have. */
export interface Standing {
  /** As it was acquired or renewed last. */
  lease: LeaseRequest;
  /** The last fencing token that was used under it, as far as is known. */
  lastToken: number;
  /** By the monotonic clock: when it ends unless it is renewed. */
  untilMs: number;
  /** By the monotonic clock: when all voters were last asked for it. */
  askedAt: number;
  /** `'kept'`: it was released, and its keys stay taken until it ends. */
  state: 'held' | 'kept' | 'over';
  /** A request that puts it back may be on its way to a voter: only a release that changes the fence stops that one. */
  isBrought: boolean;
}

/** The leases that were granted by a majority and have not ended, by token. */
export class StandingLeases {
  readonly #runtime: Runtime;
  readonly #nodeTimeoutMs: number;
  readonly #check: (standing: Standing) => void;
  /** The timer is not one of the call that happens to set it. */
  readonly #context = new AsyncResource('HoldfastStandingLeases');
  readonly #leases = new BriefMap<string, Standing>();
  #next: { readonly at: number; readonly cancel: CancelTimer } | undefined;
  #isClosed = false;

  /** @param check called for a lease for which no voter was asked for a third of its TTL */
  constructor(runtime: Runtime, nodeTimeoutMs: number, check: (standing: Standing) => void) {
    this.#runtime = runtime;
    this.#nodeTimeoutMs = nodeTimeoutMs;
    this.#check = check;
  }

  /** One that is not released. */
  held(token: string): Standing | undefined {
    const standing = this.#leases.get(token);
    return standing?.state === 'held' ? standing : undefined;
  }

  add(standing: Standing): void {
    this.#leases.set(standing.lease.token, standing);
    this.#plan(dueAt(standing));
  }

  /** Returns what ends, if that is known. */
  end(token: string): Standing | undefined {
    const standing = this.#leases.get(token);
    if (standing !== undefined) standing.state = 'over';
    this.#leases.delete(token);
    return standing;
  }

  close(): void {
    this.#isClosed = true;
    this.#next?.cancel();
    this.#next = undefined;
    this.#leases.clear();
  }

  #plan(at: number): void {
    if (this.#isClosed || (this.#next !== undefined && this.#next.at <= at)) return;
    this.#next?.cancel();
    const delayMs = Math.max(PAUSE_MS, at - this.#runtime.now().monotonicMs);
    const cancel = this.#context.runInAsyncScope(() =>
      this.#runtime.setTimer(this.#round, delayMs, 'background'),
    );
    this.#next = { at, cancel };
  }

  readonly #round = (): void => {
    this.#next = undefined;
    const now = this.#runtime.now().monotonicMs;
    let next = Infinity;
    for (const [token, standing] of this.#leases) {
      // Not all leases are released: during a long outage callers give up. A renewal may prolong a lease here for so long after it
      // would have ended: when all voters have replied.
      if (standing.untilMs + 2 * this.#nodeTimeoutMs < now) {
        this.end(token);
        continue;
      }
      if (dueAt(standing) <= now) {
        standing.askedAt = now;
        if (standing.untilMs > now) this.#check(standing);
      }
      next = Math.min(next, dueAt(standing));
    }
    if (next < Infinity) this.#plan(next);
  };
}

const dueAt = ({ askedAt, lease }: Standing): number =>
  askedAt + lease.ttlMs / 3 + RENEWED_WITHIN_MS;
