import { LockLostError, LockNotAcquiredError } from '../errors.js';
import type { Lease } from '../lease/lease.js';
import type { LockRequest } from '../lease/lock-request.js';
import { refuseSeveral } from '../options/acquire-options.js';
import type { IsHeldAround } from '../queue/caller.js';
import { anyOf, endOf, pause } from '../queue/on-abort.js';
import type { LockQueue } from '../queue/lock-queue.js';
import type { FoundKey } from '../store/admin-store.js';
import type { LockStore } from '../store/lock-store.js';
import { isOwnerToken } from '../store/owner-token.js';
import { elapsedMs, type Instant } from '../time/clock.js';
import type { Scheduler } from '../time/scheduler.js';
import type { Interventions } from './interventions.js';
import type { Presence } from './presence.js';

/** A call gives up that plain callers keep from its key for that long. */
const LONGEST_MS = 10_000;

/** Between two looks at a key that had no holder, and was refused. */
const PAUSE_MS = 20;

interface Dependencies {
  readonly store: LockStore;
  readonly queue: LockQueue;
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
    const { store, queue, interventions, presence, scheduler } = this.#deps;
    const { keys, signal, options } = request;
    refuseSeveral(keys);
    const [key = ''] = keys;
    const attempt = (): Promise<Lease> => queue.acquire(request, isHeldAround, since);
    const over = anyOf(signal === undefined ? [queue.closing] : [queue.closing, signal]);
    try {
      // A section around this call is not replaced; and why nothing is granted any more, the queue says.
      if (over.signal.aborted || isHeldAround(key)) return await attempt();
      const isOver = (): boolean =>
        over.signal.aborted || elapsedMs(since, scheduler.runtime.now()) > LONGEST_MS;
      // The next one has to reach this call.
      await endOf(presence.announced(), over.signal);
      const number = await store.admin.arrive(key);
      for (;;) {
        const [found] = await store.admin.look([key]);
        if ((found?.newest ?? number) !== number)
          throw new LockLostError({ keys, reason: 'replaced' });
        const targets = ourHoldersOf(found).map((holder) => ({ key, holder }));
        if (targets.length > 0) {
          const ending = interventions.end(targets, this.#by(request), options.replaceWaitMs);
          await endOf(ending, over.signal);
          if (!isOver()) continue;
        }
        try {
          return await attempt();
        } catch (error) {
          if (!(error instanceof LockNotAcquiredError) || isOver() || isForeign(found)) throw error;
        }
        // The key is kept for a caller in line, or another one came first.
        await pause(scheduler, PAUSE_MS, over.signal);
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
