import {
  LockNotAttachedError,
  LockServiceClosedError,
  LockStoreUnavailableError,
  type NotAttachedReason,
} from '../errors.js';
import type { DetachedLock } from '../lease/detached-lock.js';
import type { Grant, LeaseOptions } from '../lease/grant.js';
import type { LeaseKeeper } from '../lease/lease-keeper.js';
import type { Lease } from '../lease/lease.js';
import { validityMs } from '../options/validity.js';
import type { LockStore, TransferOutcome, Unavailable } from '../store/lock-store.js';
import { elapsedMs } from '../time/clock.js';
import type { Scheduler } from '../time/scheduler.js';
import { tooLate, type LockRequests } from './requests.js';

/** How the lease is held from now on. */
export interface AttachRequest extends LeaseOptions {
  readonly ttlMs: number;
}

interface Dependencies {
  readonly store: LockStore;
  readonly keeper: LeaseKeeper;
  readonly scheduler: Scheduler;
  readonly clockDrift: number;
  readonly requests: LockRequests;
  /** Whether the service still grants locks. */
  readonly isOpen: () => boolean;
}

/** Takes over locks that were detached. */
export class Attaching {
  readonly #deps: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#deps = dependencies;
  }

  /** @throws LockNotAttachedError, LockStoreUnavailableError, LockServiceClosedError */
  async attach(detached: DetachedLock, request: AttachRequest): Promise<Lease> {
    const { store, keeper, scheduler, clockDrift, requests, isOpen } = this.#deps;
    const { keys, mode, places = 1, fencingToken, lastToken } = detached;
    const { ttlMs } = request;
    const token = requests.newToken({ mode, places });
    const sentAt = scheduler.runtime.now();
    const outcome = await store.transfer({
      keys,
      token: detached.token,
      to: token,
      ttlMs,
      lastToken,
    });
    if (outcome.status === 'lost')
      throw new LockNotAttachedError({ keys, fencingToken, reason: this.#why(detached, outcome) });
    if (outcome.status === 'unavailable') {
      if (outcome.sent !== false) this.#putBack(detached, token, ttlMs);
      throw unavailable(keys, outcome);
    }
    const elapsed = elapsedMs(sentAt, scheduler.runtime.now());
    const isInTime = elapsed < validityMs(ttlMs, clockDrift);
    if (!isInTime || !isOpen()) {
      this.#putBack(detached, token, ttlMs);
      throw isInTime
        ? new LockServiceClosedError(keys)
        : unavailable(keys, tooLate(elapsed, ttlMs));
    }
    const turns = lastToken - fencingToken + 1;
    const grant: Grant = { keys, token, ttlMs, sentAt, fencingToken, turns };
    return keeper.adopt(grant, request);
  }

  /** The store does not know what was before a key was free. */
  #why(
    { untilMs }: DetachedLock,
    { reason }: TransferOutcome & { readonly status: 'lost' },
  ): NotAttachedReason {
    if (reason !== 'gone') return reason;
    const isOver = this.#deps.scheduler.runtime.now().wallMs >= untilMs;
    return isOver ? 'expired' : 'released-elsewhere';
  }

  /**
   * The lock may be ours while no caller has it. Puts it back under its old token, so that another try with the text
   * finds it. This request arrives after the one without a reply, over the same connection. If that one is carried out
   * even later, the clean-up frees the keys.
   */
  #putBack(detached: DetachedLock, token: string, ttlMs: number): void {
    const { store, keeper, requests } = this.#deps;
    const { keys, token: to, lastToken, keptForMs } = detached;
    const request = { keys, token, to, ttlMs: keptForMs, lastToken };
    const putBack = store.transfer(request).then(() => {
      keeper.discard({ keys, token }, ttlMs);
    });
    void requests.pending.add(putBack);
  }
}

const unavailable = (
  keys: readonly string[],
  { nodes }: Pick<Unavailable, 'nodes'>,
): LockStoreUnavailableError => new LockStoreUnavailableError({ operation: 'attach', keys, nodes });
