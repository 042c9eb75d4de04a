import { LockLostError, LockNotAcquiredError } from '../errors.js';
import type { Lease } from '../lease/lease.js';
import type { LeaseKeeper } from '../lease/lease-keeper.js';
import type { LockRequest } from '../lease/lock-request.js';
import { refuseSeveral } from '../options/acquire-options.js';
import type { IsHeldAround } from '../queue/caller.js';
import { anyOf, endOf, pause } from '../queue/on-abort.js';
import type { LockQueue } from '../queue/lock-queue.js';
import type { FoundKey } from '../store/admin-store.js';
import type { LockStore } from '../store/lock-store.js';
import { isOwnerToken } from '../store/owner-token.js';
import { backOffMs, type BackOff } from '../time/back-off.js';
import type { Instant } from '../time/clock.js';
import type { Scheduler } from '../time/scheduler.js';
import type { Interventions } from './interventions.js';
import type { Presence } from './presence.js';

/** Between two looks at a key that was refused although no work holds it. */
const PAUSES: BackOff = { firstMs: 20, longestMs: 500 };

/** A call gives up after that many refusals, which take 10 s. */
const MOST_REFUSALS = 24;

/** A call ends at most this many holders. Only a caller that asks again at once, such as a leader, makes more of them. */
const MOST_ROUNDS = 100;

interface Dependencies {
  readonly store: LockStore;
  readonly queue: LockQueue;
  readonly keeper: LeaseKeeper;
  readonly interventions: Interventions;
  readonly scheduler: Scheduler;
  readonly presence: Presence;
}

/**
 * Takes a key from its holder: the newest call wins. Each call draws a number at the key. It ends the holders that it
 * sees, as an operator would, and asks for the key when their work is over. A call whose number is not the last one any
 * more has been replaced itself.
 *
 * The holder is seen before the last number is read. So a call that sees a newer one as the holder sees that it is newer.
 */
export class Replacing {
  readonly #deps: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#deps = dependencies;
  }

  /**
   * Rejects with a `LockLostError` when a newer call came, and with what `queue.acquire` rejects with.
   *
   * @throws LockConfigurationError for several keys
   */
  async acquire(request: LockRequest, isHeldAround: IsHeldAround, since: Instant): Promise<Lease> {
    const { store, queue, keeper, interventions, presence, scheduler } = this.#deps;
    const { keys, signal } = request;
    const { replaceWaitMs = 0 } = request.options;
    refuseSeveral(keys);
    const [key = ''] = keys;
    const attempt = (): Promise<Lease> => queue.acquire(request, isHeldAround, since);
    const over = anyOf(signal === undefined ? [queue.closing] : [queue.closing, signal]);
    const hasLeft = (): boolean => over.signal.aborted;
    try {
      // A section around this call is not replaced; and why nothing is granted any more, the queue says.
      if (hasLeft() || isHeldAround(key)) return await attempt();
      // The next one has to reach this call.
      await endOf(presence.announced(), over.signal);
      const number = await store.admin.arrive(key);
      const lookAtIt = async (): Promise<FoundKey | undefined> => {
        const [found] = await store.admin.look([key]);
        if ((found?.newest ?? number) === number) return found;
        throw new LockLostError({ keys, reason: 'replaced' });
      };
      let refusals = 0;
      for (let rounds = 0; ; rounds += 1) {
        const found = await lookAtIt();
        const targets = ourHoldersOf(found).map((holder) => ({ key, holder }));
        const by = this.#by(request);
        const ending = interventions.replace(targets, by, replaceWaitMs, over.signal);
        if ((await endOf(ending, over.signal)) === true && rounds < MOST_ROUNDS) continue;
        let lease: Lease;
        try {
          lease = await attempt();
        } catch (error) {
          const isOver = hasLeft() || refusals >= MOST_REFUSALS || isForeign(found);
          if (!(error instanceof LockNotAcquiredError) || isOver) throw error;
          // The key is kept for a time or for a caller in line, or another one came first.
          await pause(scheduler, backOffMs(PAUSES, refusals), over.signal);
          refusals += 1;
          continue;
        }
        try {
          await lookAtIt();
        } catch (error) {
          await keeper.release(lease);
          throw error;
        }
        return lease;
      }
    } finally {
      over.unlink();
    }
  }

  #by({ origin, site }: LockRequest) {
    const call = origin?.method ?? origin?.template ?? site?.place ?? 'a call';
    return { by: `${call} in ${this.#deps.presence.name}`, reason: "onLocked: 'replace'" };
  }
}

/** Other software is not notified, so it keeps its lock. */
const ourHoldersOf = (found: FoundKey | undefined): FoundKey['holders'] =>
  found?.holders.filter(({ token }) => isOwnerToken(token)) ?? [];

const isForeign = (found: FoundKey | undefined): boolean =>
  found !== undefined && found.holders.length > ourHoldersOf(found).length;
