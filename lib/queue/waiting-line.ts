import type { Grant, Lease } from '../lease/lease.js';
import { endsWhenDone, validityMs } from '../lease/lease.js';
import type { Handoff } from '../options/resolve-options.js';
import type {
  AcquireRequest,
  Held,
  LeaseReference,
  LeaseRequest,
  LineCall,
  LinePlace,
  Unavailable,
} from '../store/lock-store.js';
import { holdModeOf, type HoldMode } from '../store/owner-token.js';
import { SLOT_MS, type Scheduler } from '../time/scheduler.js';
import { elapsedMs, type Instant } from '../time/clock.js';
import type { Runtime } from '../time/runtime.js';
import type { Caller, LockRequest } from './caller.js';

export type AttemptOutcome =
  { readonly status: 'granted'; readonly grant: Grant } | Held | Unavailable;

/** Where the store cannot tell us about releases, we look again this often at the least. */
const POLL_MS = 500;
/** Where it can, too: the store may have lost the line (`FLUSHALL`, eviction, fail-over), and then nobody is called. */
const LOOK_AGAIN_MS = 5_000;
/** Of those who are let in together, how many ask the store at once. */
const FOLLOWERS_AT_ONCE = 32;
/** During an outage: doubled from the first to the longest. */
const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 1_000;

/** When votes were split: random, or the same callers meet again; the range is doubled from the first to the longest. */
const FIRST_CONTENDED_MS = 10;
const LONGEST_CONTENDED_MS = 250;

/** A tenure lets the event loop go on this often at the least: a chain of callers without I/O would keep everything else from it. */
const YIELD_MS = 10;

/** Nobody is sure to hold the lock: the store could not decide between several that asked at once. */
export const isContended = (outcome: AttemptOutcome): boolean =>
  outcome.status === 'held' && outcome.contended === true;

/** How long to pause after so many tries in a row that were contended. */
export const contendedPauseMs = (tries: number, runtime: Runtime): number =>
  runtime.random() * Math.min(FIRST_CONTENDED_MS * 2 ** tries, LONGEST_CONTENDED_MS);

/** How the store is asked. */
export type AttemptManner = Pick<AcquireRequest, 'line' | 'joins' | 'isSplit'> & {
  /** A new one, if not given. */
  readonly token?: string;
};

/** What the lines of a service share. */
export interface LineDependencies {
  readonly attempt: (request: LockRequest, how: AttemptManner) => Promise<AttemptOutcome>;
  readonly newToken: (mode: HoldMode) => string;
  /** Whether a token was made here. */
  readonly isOwn: (token: string) => boolean;
  readonly adopt: (grant: Grant, request: LockRequest) => Lease;
  readonly discard: (lease: LeaseReference, ttlMs: number) => void;
  readonly takeTurn: (lease: Lease, request: LockRequest) => Lease;
  readonly release: (lease: Lease) => Promise<unknown>;
  /** Whether releases are reported to this process. */
  readonly isHearing: () => boolean;
  /** Opens the ear; answers whether releases are reported from now on. */
  readonly listen: () => Promise<boolean>;
  /** Leaves the store's line. */
  readonly leave: (lease: LeaseRequest, place: LinePlace) => Promise<void>;
  readonly scheduler: Scheduler;
  readonly runtime: Runtime;
  readonly clockDrift: number;
  readonly handoff: Handoff;
  /** Called when the last caller has gone. */
  readonly end: (line: WaitingLine) => void;
}

/**
 * The callers of this process that wait for the same keys. The first of them has a request in the store, the others have
 * nothing there. Between two looks the line sleeps: until it is called, or until the holder's lease may be over.
 */
export class WaitingLine {
  /** Names it among the lines of its service. */
  readonly name: string;
  readonly keys: readonly string[];
  /** Made when it first stands in the store's line. */
  #id: string | undefined;
  readonly #deps: LineDependencies;
  readonly #callers = new Set<Caller>();
  /** Of the request that is on its way, or was the last; it stands in the store's line, or may. */
  #token = '';
  /** Where it stands, if it does. With a ticket it is a line in which the first gets the lock. */
  #place: LinePlace | undefined;
  /** Kept for as long as anybody waits here, also when the token has to change. */
  #ticket: number | undefined;
  /** It has waited for another process since it was granted the lock last: then others are likely to wait for it. */
  #hasMetOthers = false;
  /** Reported since the last look began: what that look says may be out of date. */
  #dirty = false;
  /** Ends the sleep that is being slept; told to look within so many ms, it may end it later. */
  #endSleep: ((withinMs: number) => void) | undefined;
  #endPause: (() => void) | undefined;
  #failures = 0;
  /** Tries in a row that were contended. */
  #contended = 0;
  #lastOutcome: Held | Unavailable | undefined;

  constructor(name: string, keys: readonly string[], dependencies: LineDependencies) {
    this.name = name;
    this.keys = keys;
    this.#deps = dependencies;
  }

  join(caller: Caller): void {
    this.#callers.add(caller);
    caller.onGone = () => {
      this.#remove(caller);
    };
    if (this.#lastOutcome !== undefined) caller.learn(this.#lastOutcome);
  }

  /** The keys were released, or may have been. Who stands in a line in which the first gets the lock is called by name. */
  wake(): void {
    if (!this.#standsInOrder() || !this.#deps.isHearing()) this.look();
  }

  /** Whatever it waits for: calls may have been missed. */
  look(): void {
    this.#dirty = true;
    this.#endSleep?.(0);
  }

  /** The store calls somebody; answers whether it is this line. */
  called({ to, inMs }: LineCall): boolean {
    if (to !== this.#id && to !== this.#token) return false;
    // The answer of a look that is on its way may be older than the call.
    if (inMs === 0 || this.#endSleep === undefined) this.look();
    else this.#endSleep(inMs);
    return true;
  }

  /** Gives a lease of this process to the first caller, if the bounds of the tenure and what the caller asks for allow it. */
  passOn(lease: Lease): boolean {
    const caller = this.#head();
    const now = this.#deps.runtime.now();
    if (caller === undefined || !this.#mayPass(lease, caller.request, now)) return false;
    this.#remove(caller);
    const turn = this.#deps.takeTurn(lease, caller.request);
    const { tenure } = turn;
    if (elapsedMs(tenure.yieldedAt, now) < YIELD_MS) {
      caller.grant(turn);
      return true;
    }
    tenure.yieldedAt = now;
    this.#deps.runtime.afterInput(() => {
      // It may have gone meanwhile: the keeper reports what went wrong with the release.
      if (caller.isOver) this.#deps.release(turn).catch(() => undefined);
      else caller.grant(turn);
    });
    return true;
  }

  sendAway(reason: (keys: readonly string[]) => Error): void {
    for (const caller of [...this.#callers]) caller.fail(reason(caller.request.keys));
  }

  /** Serves one after the other. Resolves when everybody has gone and nothing is left in the store. */
  async serve(): Promise<void> {
    try {
      for (let head = this.#head(); head !== undefined; head = this.#head())
        await this.#serveFirst(head.request);
    } catch (error) {
      // Nobody else asks for them: without an answer they would wait until their time is over, whoever holds the keys.
      for (const caller of [...this.#callers]) caller.fail(error);
    }
    // From here on whoever comes opens another line.
    this.#deps.end(this);
    if (this.#place !== undefined) await this.#leave();
  }

  /** Asks the store once, and sleeps until it is time to ask again. */
  async #serveFirst(request: LockRequest): Promise<void> {
    this.#dirty = false;
    const hearing = this.#deps.isHearing();
    // Who has a place names it also while it hears nothing, or it would be left behind by the grant.
    const place = hearing || this.#place ? this.#placeFor(request) : undefined;
    if (!this.#standsInOrder()) this.#token = this.#deps.newToken(request.mode);
    const outcome = await this.#deps.attempt(request, {
      line: place,
      token: this.#token,
      isSplit: this.#contended > 0,
    });
    if (outcome.status === 'granted') {
      const before = [...this.#callers];
      this.#granted(request, outcome.grant);
      if (request.mode === 'shared') await this.#letFollow(before, outcome.grant.fencingToken);
      // Our own process holds it now and will wake us; asking the store would only be refused, unless several may hold it.
      else if (request.mode === 'exclusive' && this.#callers.size > 0)
        await this.#sleep(this.#lookWithin(outcome.grant.ttlMs));
    } else if (outcome.status === 'held') await this.#held(outcome, place, hearing);
    else await this.#unavailable(outcome);
  }

  #granted(request: LockRequest, grant: Grant): void {
    this.#failures = 0;
    this.#place = undefined;
    const caller = this.#head();
    // Gone while the request was on its way: the lock is for somebody else, in this line too if what was asked for fits.
    if (caller === undefined || !isAlike(caller.request, request)) {
      this.#deps.discard(grant, grant.ttlMs);
      return;
    }
    this.#remove(caller);
    // Of readers, those who came before the grant go in with it, or keep their place.
    if (request.mode !== 'shared') this.#ticket = undefined;
    const othersWait = this.#hasMetOthers || grant.othersWait;
    this.#hasMetOthers = false;
    caller.grant(this.#deps.adopt({ ...grant, othersWait }, caller.request));
    if (this.#callers.size === 0) return;
    const { keys, ttlMs } = grant;
    this.#tell({ status: 'held', key: keys[0] ?? '', remainingMs: ttlMs, checkAgainMs: ttlMs });
  }

  /**
   * Those who waited together with a reader that was let in: each gets a lease of its own, for as long as that phase lasts. Whoever comes
   * later stands in line anew, or readers could keep writers out indefinitely.
   */
  async #letFollow(callers: readonly Caller[], phase: number): Promise<void> {
    for (let next = 0; next < callers.length; next += FOLLOWERS_AT_ONCE) {
      const batch = callers
        .slice(next, next + FOLLOWERS_AT_ONCE)
        .filter((caller) => this.#callers.has(caller));
      const joined = await Promise.all(batch.map((caller) => this.#follow(caller, phase)));
      if (joined.includes(false)) return;
    }
    this.#ticket = undefined;
  }

  /** Answers whether that phase lasts. */
  async #follow(caller: Caller, phase: number): Promise<boolean> {
    const { request } = caller;
    const outcome = await this.#deps.attempt(request, { joins: phase });
    if (outcome.status !== 'granted') return false;
    const { grant } = outcome;
    if (this.#callers.delete(caller)) caller.grant(this.#deps.adopt(grant, request));
    else this.#deps.discard(grant, grant.ttlMs);
    return true;
  }

  async #held(outcome: Held, place: LinePlace | undefined, hearing: boolean): Promise<void> {
    this.#tell(outcome);
    this.#failures = 0;
    if (outcome.holder !== undefined && !this.#deps.isOwn(outcome.holder))
      this.#hasMetOthers = true;
    if (place !== undefined) {
      this.#ticket = outcome.ticket;
      this.#place = { ...place, ticket: outcome.ticket };
    }
    // Look again right after the ear was opened: the release may have been reported before it was.
    if (!hearing && (await this.#deps.listen())) return;
    this.#contended = isContended(outcome) ? this.#contended + 1 : 0;
    // Not to be woken: those who asked at once would do so again.
    if (this.#contended > 0)
      await this.#pause(contendedPauseMs(this.#contended, this.#deps.runtime));
    else if (hearing) await this.#sleep(this.#lookWithin(outcome.checkAgainMs));
    else await this.#sleep(Math.min(outcome.checkAgainMs, POLL_MS));
  }

  async #unavailable(outcome: Unavailable): Promise<void> {
    this.#tell(outcome);
    if (outcome.sent !== false) void this.#leave();
    if (!outcome.transient) this.#head()?.giveUp();
    // Not to be woken: the release may be our own clean-up of the attempt that failed.
    else await this.#pause(Math.min(FIRST_RETRY_MS * 2 ** this.#failures++, LONGEST_RETRY_MS));
  }

  /** Whether it stands in a line in which the first gets the lock. */
  #standsInOrder(): boolean {
    return this.#place?.ticket !== undefined;
  }

  /** However sure it is to be called: a place in a line that is lost is taken again, with its ticket, before others have waited long. */
  #lookWithin(ms: number): number {
    const ttlMs = this.#head()?.request.ttlMs ?? Infinity;
    return Math.min(ms, LOOK_AGAIN_MS, ttlMs / 3);
  }

  /** The one it has, or, with the ticket it had before, a new one. */
  #placeFor({ ttlMs, mode }: LockRequest): LinePlace {
    if (this.#id === undefined) {
      const uuid = this.#deps.runtime.uuid();
      this.#id = mode === 'exclusive' ? uuid : `${uuid}:${mode}`;
    }
    return this.#place ?? { id: this.#id, ttlMs, ticket: this.#ticket };
  }

  async #leave(): Promise<void> {
    const place = this.#place;
    if (place === undefined) return;
    this.#place = undefined;
    const lease = { keys: this.keys, token: this.#token, ttlMs: place.ttlMs };
    await this.#deps.leave(lease, place);
  }

  #mayPass(lease: Lease, request: LockRequest, now: Instant): boolean {
    const { tenure, ttlMs, options } = lease;
    const { handoff, clockDrift } = this.#deps;
    return (
      tenure.nextToken !== undefined &&
      // A place that is held passes to whoever waits for one; a reader has nothing to pass on that others could not have at once.
      request.mode !== 'shared' &&
      holdModeOf(lease.token) === request.mode &&
      (!tenure.othersWait || tenure.turns < handoff.turns) &&
      elapsedMs(tenure.since, now) < handoff.tenureMs &&
      // Who asks for another lease gets it from the store.
      isAlike({ ...options, ttlMs }, request) &&
      // What is left of this one need not cover it.
      endsWhenDone(request) &&
      options.autoExtend &&
      lease.validForMsAt(now) > validityMs(ttlMs, clockDrift) / 2
    );
  }

  #tell(outcome: Held | Unavailable): void {
    this.#lastOutcome = outcome;
    for (const caller of this.#callers) caller.learn(outcome);
  }

  #head(): Caller | undefined {
    return this.#callers.values().next().value;
  }

  #remove(caller: Caller): void {
    this.#callers.delete(caller);
    if (this.#callers.size === 0) this.#endPause?.();
  }

  /** Until it is called, or `ms` and a little. */
  async #sleep(ms: number): Promise<void> {
    if (this.#dirty || this.#callers.size === 0) return;
    const { scheduler, runtime } = this.#deps;
    await new Promise<void>((resolve) => {
      const since = runtime.now();
      let dueMs = ms;
      let alarm = scheduler.schedule(ms + jitterMs(runtime), resolve);
      this.#endPause = () => {
        alarm.cancel();
        resolve();
      };
      this.#endSleep = (withinMs) => {
        if (withinMs === 0) {
          this.#endPause?.();
          return;
        }
        const at = elapsedMs(since, runtime.now()) + withinMs;
        if (at >= dueMs) return;
        dueMs = at;
        alarm.cancel();
        alarm = scheduler.schedule(withinMs + jitterMs(runtime), resolve);
      };
    });
    this.#endSleep = undefined;
    this.#endPause = undefined;
  }

  /** `ms` and a little, whoever calls. Ends when nobody waits any more. */
  async #pause(ms: number): Promise<void> {
    if (this.#callers.size === 0) return;
    await new Promise<void>((resolve) => {
      const { scheduler, runtime } = this.#deps;
      const alarm = scheduler.schedule(ms + jitterMs(runtime), resolve);
      this.#endPause = () => {
        alarm.cancel();
        resolve();
      };
    });
    this.#endPause = undefined;
  }
}

/** Keeps the processes in line from looking at the same moment. */
const jitterMs = (runtime: Runtime): number => SLOT_MS * (1 + 2 * runtime.random());

const isAlike = (
  one: Pick<LockRequest, 'ttlMs' | 'autoExtend'>,
  other: Pick<LockRequest, 'ttlMs' | 'autoExtend'>,
): boolean => one.ttlMs === other.ttlMs && one.autoExtend === other.autoExtend;
