import { Chain } from '../collections/chain.js';
import { Lease } from '../lease/lease.js';
import type { LockRequest } from '../lease/lock-request.js';
import type { BriefHold, Held, LineCall, LinePlace, Unavailable } from '../store/lock-store.js';
import { tailOf } from '../store/owner-token.js';
import type { Instant } from '../time/clock.js';
import type { Caller, IsHeldAround } from './caller.js';
import { EarlierKeys, type EarlierDependencies } from './earlier-keys.js';
import { handOver, wantSameLease, mayPass } from './hand-over.js';
import {
  contendedPauseMs,
  isContended,
  LineSleep,
  lookWithinMs,
  outagePauseMs,
  POLL_MS,
} from './line-sleep.js';
import type { ReleaseSubscription } from './release-subscription.js';
import type { AttemptOutcome, QueueFoundation } from './requests.js';

/** How many of the readers that are admitted together ask the store at once. */
const AT_ONCE = 32;

/** What the lines of a service share. */
export interface LineDependencies extends EarlierDependencies, QueueFoundation {
  readonly releases: ReleaseSubscription;
  /** Called when the last caller has gone. */
  readonly dissolve: (line: WaitingLine) => void;
}

/** A request that was sent to the store. */
interface SentRequest {
  readonly place: LinePlace | undefined;
  readonly keeps: BriefHold | undefined;
  /** Calls were received when it was sent. */
  readonly hearing: boolean;
}

/**
 * The callers of this process that wait for the same keys. The first of them has a request in the store, the others have
 * nothing there. Between two looks the line sleeps: until it is called, or until the holder's lease may be over.
 */
export class WaitingLine {
  /** Names it among the lines of its service. */
  readonly name: string;
  readonly keys: readonly string[];
  /** Made when it first stands in the store's line. No token ends so: calls of a place that it has left are for `passOn`. */
  #id: string | undefined;
  readonly #deps: LineDependencies;
  /** A line has nothing to wait for when the last of them has gone. */
  readonly #callers = new Chain<Caller>(this);
  /** Made when it first sleeps: most lines never do. */
  #sleep: LineSleep | undefined;
  /** For several keys: which of them it holds while it waits. */
  readonly #earlier: EarlierKeys | undefined;
  /** The token of the request that is on its way, or was the last; it stands in the store's line, or may. */
  #token = '';
  /** Where it stands, if it does. With a ticket it is a line in which the first gets the lock. */
  #place: LinePlace | undefined;
  /** Kept while any caller waits here, even if the token has to change. */
  #ticket: number | undefined;
  /** The line has waited for another process since it was granted the lock last: then others are likely to wait for it. */
  #hasMetOthers = false;
  /** Reported since the last look began: what that look says may be out of date. */
  #dirty = false;
  #failures = 0;
  /** Tries in a row that were contended. */
  #contended = 0;
  #lastOutcome: Held | Unavailable | undefined;

  constructor(name: string, keys: readonly string[], dependencies: LineDependencies) {
    this.name = name;
    this.keys = keys;
    this.#deps = dependencies;
    this.#earlier = keys.length === 1 ? undefined : new EarlierKeys(keys, dependencies);
  }

  get callers(): readonly Caller[] {
    return this.#callers.all;
  }

  /** The last caller has gone. */
  onEmpty(): void {
    this.#sleep?.end();
  }

  join(caller: Caller): void {
    this.#callers.add(caller);
    if (this.#lastOutcome !== undefined) caller.learn(this.#lastOutcome);
  }

  /** The keys were released, or may have been. Who stands in a line in which the first gets the lock is called by name. */
  wake(): void {
    if (!this.#standsInOrder() || !this.#deps.releases.isOpen) this.look();
  }

  /** Whatever it waits for: calls may have been missed. */
  look(): void {
    this.#dirty = true;
    this.#sleep?.wake(0);
  }

  /** The store calls a waiter. Returns whether it is this line. */
  called({ to, inMs }: LineCall): boolean {
    if (![this.#id, this.#token, tailOf(this.#token)].includes(to)) return false;
    // The reply to a pending request may be older than the call.
    if (inMs === 0 || this.#sleep?.isAsleep !== true) this.look();
    else this.#sleep.wake(inMs);
    return true;
  }

  /** A section that holds the key which this line waits for asks for a key that the line holds: it gets that at once. */
  giveBackTo(keys: readonly string[], isHeldAround: IsHeldAround): void {
    if (this.#earlier?.blocks(keys, isHeldAround) !== true) return;
    this.#earlier.yield();
    this.#sleep?.wake(0);
  }

  /** Gives a lease of this process to the first caller, if the bounds of the tenure and what the caller asks for allow it. */
  passOn(lease: Lease, now: Instant): boolean {
    const caller = this.#head();
    if (caller === undefined || !mayPass(lease, caller.request, this.#deps.options.handoff, now))
      return false;
    this.#callers.delete(caller);
    handOver(lease, caller, this.#deps, now);
    return true;
  }

  sendAway(reason: (keys: readonly string[]) => Error): void {
    for (const caller of this.#callers.all) caller.fail(reason(caller.request.keys));
  }

  /** Serves one caller after the other, until all have gone and nothing is left in the store. */
  serve(): void {
    this.#deps.requests.pending.begin();
    this.#serveNext();
  }

  #serveNext(): void {
    const request = this.#head()?.request;
    if (request === undefined) {
      this.#end();
      return;
    }
    try {
      this.#ask(request);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** No other code asks for the callers: without this error they would wait until their time is over, even when the keys are free. */
  #fail(error: unknown): void {
    for (const caller of this.#callers.all) caller.fail(error);
    this.#end();
  }

  #end(): void {
    // From here on the next caller opens another line.
    this.#deps.dissolve(this);
    const { pending } = this.#deps.requests;
    if (this.#place === undefined) pending.end();
    else void this.#leave().then(pending.end);
  }

  /** Asks the store once, does what the reply demands, and asks again when it is time for that. */
  #ask(request: LockRequest): void {
    this.#dirty = false;
    const hearing = this.#deps.releases.isOpen;
    if (!this.#standsInOrder()) this.#token = this.#deps.requests.newToken(request.options);
    // A line with a place names it even while it is not subscribed, or the grant would leave the place behind.
    const place =
      (hearing && !this.#isPlainFirst()) || this.#place ? this.#placeFor(request) : undefined;
    const keeps = place && this.#earlier?.keepsFor(request.options.ttlMs);
    const asked = { place, keeps, hearing };
    this.#deps.requests
      .attempt(request, {
        line: place,
        token: this.#token,
        keeps,
        asked: this.#earlier?.asked,
        splits: this.#contended,
      })
      .then((outcome) => this.#answered(request, asked, outcome))
      .then(
        () => {
          this.#serveNext();
        },
        (error: unknown) => {
          this.#fail(error);
        },
      );
  }

  /** Returns what to wait for before the next request, if there is anything. */
  #answered(
    request: LockRequest,
    asked: SentRequest,
    outcome: AttemptOutcome,
  ): Promise<void> | undefined {
    if (outcome instanceof Lease)
      return this.#isForAnother(request) ? undefined : this.#granted(outcome);
    if (outcome.status === 'held') return this.#held(outcome, asked);
    return this.#unavailable(outcome, asked.place);
  }

  /**
   * Whether the caller that the lock was granted to has gone, and the next one asks for something else. The next one
   * then asks for the keys with the token that has them, before another process in line gets them.
   */
  #isForAnother(request: LockRequest): boolean {
    const next = this.#head()?.request;
    return (
      next !== undefined && !wantSameLease(next.options, request.options) && this.#standsInOrder()
    );
  }

  #granted(lease: Lease): Promise<void> | undefined {
    const { mode, ttlMs } = lease;
    const before = mode === 'shared' ? this.#callers.all : [];
    this.#adopt(lease);
    if (mode === 'shared') return this.#letFollow(before, lease.fencingToken);
    // Our own process holds it now and will wake us; asking the store would only be refused, unless several may hold it.
    if (mode !== 'exclusive' || this.#callers.isEmpty) return undefined;
    return this.#sleepFor(this.#lookWithin(ttlMs));
  }

  #adopt(lease: Lease): void {
    const { keys, ttlMs, request, tenure } = lease;
    this.#failures = 0;
    this.#earlier?.granted();
    this.#forgetPlace();
    const caller = this.#head();
    // The caller left while the request was on its way. The lock goes to another caller, of this line too if the
    // request fits.
    if (caller === undefined || !wantSameLease(caller.request.options, request.options)) {
      this.#deps.requests.giveBack(lease);
      return;
    }
    this.#callers.delete(caller);
    // Readers that came before the grant are admitted with it, or keep their place.
    if (lease.mode !== 'shared') this.#ticket = undefined;
    if (this.#hasMetOthers) tenure.othersWait = true;
    this.#hasMetOthers = false;
    caller.grant(this.#deps.keeper.adopt(lease, caller.request));
    if (this.#callers.isEmpty) return;
    this.#tell({ status: 'held', key: keys[0] ?? '', remainingMs: ttlMs, checkAgainMs: ttlMs });
  }

  /**
   * Admits the callers that waited together with a reader that was admitted. Each gets a lease of its own, for as long
   * as that read phase lasts. Callers that come later join the line again: otherwise readers could keep writers out
   * indefinitely.
   *
   * @param phase the fencing token of the readers that hold it together
   */
  async #letFollow(callers: readonly Caller[], phase: number): Promise<void> {
    for (let next = 0; next < callers.length; next += AT_ONCE) {
      const batch = callers.slice(next, next + AT_ONCE);
      const waiting = batch.filter((caller) => this.#callers.has(caller));
      const joined = await Promise.all(waiting.map((caller) => this.#follow(caller, phase)));
      if (joined.includes(false)) return;
    }
    this.#ticket = undefined;
  }

  /** Resolves with whether that phase lasts. */
  async #follow(caller: Caller, phase: number): Promise<boolean> {
    const { keeper, requests } = this.#deps;
    const outcome = await requests.attempt(caller.request, { joins: phase });
    if (!(outcome instanceof Lease)) return false;
    if (this.#callers.delete(caller)) caller.grant(keeper.adopt(outcome, caller.request));
    else requests.giveBack(outcome);
    return true;
  }

  async #held(outcome: Held, asked: SentRequest): Promise<void> {
    const { place, hearing } = asked;
    this.#tell(outcome);
    this.#failures = 0;
    this.#earlier?.meets(outcome.key);
    if (outcome.holder !== undefined && !this.#deps.requests.isOwn(outcome.holder))
      this.#hasMetOthers = true;
    if (place !== undefined) {
      // None where it could not be written again, because memory is full: the place that it had is still there.
      this.#ticket = outcome.ticket ?? place.ticket;
      this.#place = { ...place, ticket: this.#ticket };
    }
    // Over several masters no line decides, and a request that is repeated has another token: it holds nothing while it waits.
    if (this.#standsInOrder()) {
      const outage = await this.#earlier?.refused(outcome, asked.keeps, this.#token);
      if (outage !== undefined) return this.#unavailable(outage, this.#place);
    }
    // Ask again right after the subscription was opened: a release may have been reported before it was.
    if (!hearing && (await this.#deps.releases.open())) return;
    this.#contended = isContended(outcome) ? this.#contended + 1 : 0;
    // Not woken by releases: the callers that asked at once would do so again.
    if (this.#contended > 0)
      await this.#pauseFor(contendedPauseMs(this.#contended, this.#deps.scheduler.runtime));
    // The next request names a place.
    else if (hearing && place === undefined) return;
    else {
      const { checkAgainMs } = outcome;
      const withinMs = hearing ? this.#lookWithin(checkAgainMs) : Math.min(checkAgainMs, POLL_MS);
      await this.#sleepFor(Math.min(withinMs, this.#earlier?.leftMs ?? Infinity));
    }
  }

  async #unavailable(outcome: Unavailable, place: LinePlace | undefined): Promise<void> {
    this.#tell(outcome);
    // Even for an unknown place: the store may still carry out a request without a reply.
    if (outcome.sent !== false) void this.#leave(place);
    if (!outcome.transient) this.#head()?.giveUp();
    // Not to be woken: the release may be our own clean-up of the attempt that failed.
    else await this.#pauseFor(outagePauseMs(this.#failures++));
  }

  /** Whether it stands in a line in which the first gets the lock. */
  #standsInOrder(): boolean {
    return this.#place?.ticket !== undefined;
  }

  #lookWithin(ms: number): number {
    return lookWithinMs(ms, this.#head()?.request.options.ttlMs);
  }

  /** Whether this is the first request, and is to name no place. */
  #isPlainFirst(): boolean {
    const isFirst = this.#lastOutcome === undefined && this.keys.length === 1;
    return isFirst && this.#deps.store.isPlainFirst === true;
  }

  /** The one it has, or, with the ticket it had before, a new one. */
  #placeFor({ options: { ttlMs } }: LockRequest): LinePlace {
    this.#id ??= `line-${tailOf(this.#token)}`;
    return this.#place ?? { id: this.#id, ttlMs, ticket: this.#ticket };
  }

  async #leave(place = this.#place): Promise<void> {
    if (place === undefined) return;
    this.#forgetPlace();
    const lease = { keys: this.keys, token: this.#token, ttlMs: place.ttlMs };
    await this.#deps.requests.leave(lease, place);
  }

  /** The store knows of nothing that this line has there. */
  #forgetPlace(): void {
    this.#place = undefined;
    this.#earlier?.forget();
  }

  #tell(outcome: Held | Unavailable): void {
    this.#lastOutcome = outcome;
    // One of them may leave, or send another away, when it learns that.
    for (const caller of this.#callers.all) if (this.#callers.has(caller)) caller.learn(outcome);
  }

  #head(): Caller | undefined {
    return this.#callers.first;
  }

  /** Unless it is to ask again already. */
  async #sleepFor(ms: number): Promise<void> {
    if (!this.#dirty && !this.#callers.isEmpty) await this.#sleeping().sleep(ms);
  }

  async #pauseFor(ms: number): Promise<void> {
    if (!this.#callers.isEmpty) await this.#sleeping().pause(ms);
  }

  #sleeping(): LineSleep {
    this.#sleep ??= new LineSleep(this.#deps.scheduler);
    return this.#sleep;
  }
}
