import { SLOT_MS, type Agenda } from '../time/agenda.js';
import type { Grant, Lease } from '../lease/lease.js';
import type { Held, LeaseReference, Unavailable } from '../store/lock-store.js';
import type { Caller, LockRequest } from './caller.js';

export type AttemptOutcome =
  { readonly status: 'granted'; readonly grant: Grant } | Held | Unavailable;

/** Where the store cannot tell us about releases, we look again this often at the least. */
const POLL_MS = 500;
/** During an outage: doubled from the first to the longest. */
const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 1_000;

/** When votes were split: random, or the same callers meet again; the range is doubled from the first to the longest. */
const FIRST_CONTENDED_MS = 10;
const LONGEST_CONTENDED_MS = 1_000;

/** Nobody is sure to hold the lock: the store could not decide between several that asked at once. */
export const isContended = (outcome: AttemptOutcome): boolean =>
  outcome.status === 'held' && outcome.contended === true;

/** How long to pause after so many tries in a row that were contended. */
export const contendedPauseMs = (tries: number): number =>
  Math.random() * Math.min(FIRST_CONTENDED_MS * 2 ** tries, LONGEST_CONTENDED_MS);

interface Dependencies {
  readonly attempt: (request: LockRequest, standInLine: boolean) => Promise<AttemptOutcome>;
  readonly adopt: (grant: Grant, request: LockRequest) => Lease;
  readonly discard: (lease: LeaseReference, ttlMs: number) => void;
  /** Whether releases are reported to this process. */
  readonly isHearing: () => boolean;
  /** Opens the ear; answers whether releases are reported from now on. */
  readonly listen: () => Promise<boolean>;
  readonly agenda: Agenda;
  /** Called when the last caller has gone. */
  readonly end: () => Promise<void>;
}

/**
 * The callers of this process that wait for the same keys. The first of them has a request in the store, the others have
 * nothing there. Between two looks the line sleeps: until a release is reported, or until the holder's lease may be over.
 */
export class WaitingLine {
  readonly #deps: Dependencies;
  readonly #callers = new Set<Caller>();
  /** Reported since the last look began: what that look says may be out of date. */
  #dirty = false;
  #asleep = false;
  #endPause: (() => void) | undefined;
  #failures = 0;
  /** Tries in a row that were contended. */
  #contended = 0;
  #lastOutcome: Held | Unavailable | undefined;

  constructor(dependencies: Dependencies) {
    this.#deps = dependencies;
  }

  join(caller: Caller): void {
    this.#callers.add(caller);
    caller.onGone = () => {
      this.#callers.delete(caller);
      if (this.#callers.size === 0) this.#endPause?.();
    };
    if (this.#lastOutcome !== undefined) caller.learn(this.#lastOutcome);
  }

  wake(): void {
    this.#dirty = true;
    if (this.#asleep) this.#endPause?.();
  }

  sendAway(reason: (keys: readonly string[]) => Error): void {
    for (const caller of [...this.#callers]) caller.fail(reason(caller.request.keys));
  }

  /** Serves one after the other. Resolves when everybody has gone and nothing is left in the store. */
  async serve(): Promise<void> {
    for (let head = this.#head(); head !== undefined; head = this.#head()) {
      this.#dirty = false;
      const hearing = this.#deps.isHearing();
      const outcome = await this.#deps.attempt(head.request, hearing);
      if (outcome.status === 'granted') await this.#granted(head, outcome.grant);
      else await this.#refused(head, outcome, hearing);
    }
    await this.#deps.end();
  }

  async #granted(head: Caller, grant: Grant): Promise<void> {
    this.#failures = 0;
    // Gone while the request was on its way: the lock is passed on, to others of this line too.
    if (!this.#callers.delete(head)) this.#deps.discard(grant, grant.ttlMs);
    else {
      head.grant(this.#deps.adopt(grant, head.request));
      const { keys, ttlMs } = grant;
      this.#tell({ status: 'held', key: keys[0] ?? '', remainingMs: ttlMs, checkAgainMs: ttlMs });
      // Our own process holds it now and will wake us; asking the store would only be refused.
      await this.#sleep(ttlMs);
    }
  }

  async #refused(head: Caller, outcome: Held | Unavailable, hearing: boolean): Promise<void> {
    this.#tell(outcome);
    if (outcome.status === 'held') {
      this.#failures = 0;
      // Look again right after the ear was opened: the release may have been reported before it was.
      if (!hearing && (await this.#deps.listen())) return;
      this.#contended = isContended(outcome) ? this.#contended + 1 : 0;
      if (this.#contended > 0) {
        // Not to be woken: those who asked at once would do so again.
        await this.#pause(contendedPauseMs(this.#contended));
        return;
      }
      const checkAgainMs = Math.min(outcome.checkAgainMs, hearing ? Infinity : POLL_MS);
      await this.#sleep(checkAgainMs);
    } else if (outcome.transient) {
      // Not to be woken: the release may be our own clean-up of the attempt that failed.
      await this.#pause(Math.min(FIRST_RETRY_MS * 2 ** this.#failures++, LONGEST_RETRY_MS));
    } else head.giveUp();
  }

  #tell(outcome: Held | Unavailable): void {
    this.#lastOutcome = outcome;
    for (const caller of this.#callers) caller.learn(outcome);
  }

  #head(): Caller | undefined {
    return this.#callers.values().next().value;
  }

  /** Until a release is reported, or `ms` and a little. */
  async #sleep(ms: number): Promise<void> {
    if (this.#dirty) return;
    this.#asleep = true;
    await this.#pause(ms);
    this.#asleep = false;
  }

  /** `ms` and a little: jitter keeps the processes in line from looking at the same moment. Ends when nobody waits any more. */
  async #pause(ms: number): Promise<void> {
    if (this.#callers.size === 0) return;
    const jitterMs = SLOT_MS * (1 + 2 * Math.random());
    await new Promise<void>((resolve) => {
      const alarm = this.#deps.agenda.schedule(ms + jitterMs, resolve);
      this.#endPause = () => {
        alarm.cancel();
        resolve();
      };
    });
    this.#endPause = undefined;
  }
}
