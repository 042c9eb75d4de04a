import { LockLostError, type LockLostReason } from '../errors.js';
import type { LeaseReference } from '../store/lock-store.js';
import { holdModeOf } from '../store/owner-token.js';
import type { Task } from '../time/scheduler.js';
import type { CallSite } from './call-site.js';
import { elapsedMs, type Clock, type Instant } from '../time/clock.js';

/** What the store granted, and when it was asked. */
export interface Grant extends LeaseReference {
  readonly fencingToken: number;
  readonly ttlMs: number;
  /** The moment the request was sent: validity counts from here (Redlock, "safety arguments"). */
  readonly sentAt: Instant;
  /** How many fencing tokens from that one on belong to the lease. */
  readonly turns?: number | undefined;
  /** Whether others stood in line for the keys when it was granted. */
  readonly othersWait?: boolean | undefined;
}

export interface HoldingOptions {
  readonly autoExtend: boolean;
  readonly maxHoldMs: number;
  /** For so long after it was acquired the keys stay taken, whenever it ends. */
  readonly minHoldMs: number;
  readonly release: 'when-done' | 'on-expiry';
  /** Where it was asked for, if that is known. */
  readonly site?: CallSite | undefined;
}

/** Whether the keys may be given to somebody else as soon as the holder is done with them. */
export const endsWhenDone = ({
  minHoldMs,
  release,
}: Pick<HoldingOptions, 'minHoldMs' | 'release'>): boolean =>
  minHoldMs === 0 && release === 'when-done';

/**
 * How much of a TTL may be relied on: clocks of client and server run at different speeds. The fraction is an option, the
 * 2 ms are what Redis' expiry resolution and small TTLs need (redis.io, "Distributed locks with Redis").
 */
export const validityMs = (ttlMs: number, clockDrift: number): number =>
  ttlMs - ttlMs * clockDrift - 2;

/** One process's unbroken ownership of keys in the store, while turns pass between its own callers. */
export class Tenure {
  readonly since: Instant;
  readonly othersWait: boolean;
  /** The turn that is being taken. */
  current: Lease;
  /** Turns that were taken, this one too. */
  turns = 1;
  /** When the event loop was last let go on, as far as is known. */
  yieldedAt: Instant;
  /** The last fencing token that belongs to it. */
  readonly lastToken: number;

  constructor(first: Lease, { fencingToken, turns = 1, othersWait = true }: Grant, now: Instant) {
    this.current = first;
    this.since = now;
    this.yieldedAt = now;
    this.othersWait = othersWait;
    this.lastToken = fencingToken + turns - 1;
  }

  /** The fencing token of one more turn, if there is one. Those who hold a key together have the same one, and so do their turns. */
  get nextToken(): number | undefined {
    const { token, fencingToken } = this.current;
    if (holdModeOf(token) !== 'exclusive') return fencingToken;
    return fencingToken < this.lastToken ? fencingToken + 1 : undefined;
  }
}

type State =
  | { readonly status: 'held' }
  /** A renewal failed or is late; still held until the deadline. */
  | { readonly status: 'jeopardy' }
  | { readonly status: 'lost'; readonly reason: LockLostReason };

const HELD: State = { status: 'held' };

/**
 * Ownership as this process knows it: held → jeopardy → held again, or lost. It keeps time and state; renewing and ending it is
 * the keeper's work.
 */
export class Lease implements LeaseReference {
  readonly keys: readonly string[];
  readonly token: string;
  readonly fencingToken: number;
  readonly heldSince: Instant;
  readonly options: HoldingOptions;
  readonly tenure: Tenure;
  readonly #clock: Clock;
  readonly #clockDrift: number;
  readonly #grantedAtMs: number;
  #ttlMs: number;
  #longestTtlMs: number;
  #sentAt: Instant;
  #state: State = HELD;
  #abort: AbortController | undefined;

  /** The keeper's: when it looks at this lease again. */
  task: Task | undefined;
  /** The keeper's: the renewal that is on its way, if any. */
  renewing: Promise<unknown> | undefined;
  /** The keeper's: the release that was asked for, if any. */
  releasing: Promise<boolean> | undefined;

  constructor(
    grant: Grant,
    options: HoldingOptions,
    clock: Clock,
    clockDrift: number,
    now: Instant,
    previous?: Lease,
  ) {
    this.keys = grant.keys;
    this.token = grant.token;
    this.fencingToken = grant.fencingToken;
    this.heldSince = previous === undefined ? grant.sentAt : now;
    this.tenure = previous?.tenure ?? new Tenure(this, grant, now);
    this.#grantedAtMs = now.monotonicMs;
    this.options = options;
    this.#ttlMs = grant.ttlMs;
    this.#longestTtlMs = previous?.longestTtlMs ?? grant.ttlMs;
    this.#sentAt = grant.sentAt;
    this.renewing = previous?.renewing;
    this.#clock = clock;
    this.#clockDrift = clockDrift;
  }

  /** The next turn: a lock of its own, with what is left of the validity. */
  passOn(options: HoldingOptions, now: Instant): Lease {
    const { keys, token, tenure } = this;
    const turn = new Lease(
      {
        keys,
        token,
        fencingToken: tenure.nextToken ?? this.fencingToken,
        ttlMs: this.#ttlMs,
        sentAt: this.#sentAt,
      },
      options,
      this.#clock,
      this.#clockDrift,
      now,
      this,
    );
    // From here on the renewal is the new turn's: nobody would take it from this lease any more.
    this.renewing = undefined;
    tenure.current = turn;
    tenure.turns += 1;
    return turn;
  }

  /** Since the request was sent that the validity counts from. */
  sinceSentMs(now: Instant): number {
    return elapsedMs(this.#sentAt, now);
  }

  get ttlMs(): number {
    return this.#ttlMs;
  }

  /** The longest TTL that may be in force in the store: of what it confirmed last, and of what was sent since. */
  get longestTtlMs(): number {
    return this.#longestTtlMs;
  }

  get state(): State {
    return this.#state;
  }

  /** What is left of the validity by the clocks, whatever the state; may be negative. */
  get validForMs(): number {
    return this.validForMsAt(this.#clock.now());
  }

  validForMsAt(now: Instant): number {
    return validityMs(this.#ttlMs, this.#clockDrift) - elapsedMs(this.#sentAt, now);
  }

  /** Until it is over unless it is renewed, or has been held for long enough. */
  endsInMs(now: Instant): number {
    return Math.min(
      this.validForMsAt(now),
      this.options.maxHoldMs - elapsedMs(this.heldSince, now),
    );
  }

  /**
   * For how long the store has to keep the keys taken if the lease ends now; 0: not at all. By the clock that nobody sets: a step
   * forward must not shorten it.
   */
  get keepMs(): number {
    const { minHoldMs, release } = this.options;
    if (endsWhenDone(this.options)) return 0;
    const leftMs = minHoldMs - (this.#clock.now().monotonicMs - this.#grantedAtMs);
    return Math.ceil(Math.max(0, leftMs, release === 'on-expiry' ? this.#ttlMs : 0));
  }

  heldForMs(now: Instant): number {
    return elapsedMs(this.heldSince, now);
  }

  /** Created when first asked for: most locks never need one. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#state.status === 'lost' && this.#state.reason !== 'released')
      this.#abortWith(this.#state.reason);
    return this.#abort.signal;
  }

  /** Why this lease protects nothing any more, by state or by the clocks; `undefined` while it is held. */
  get lostReason(): LockLostReason | undefined {
    return this.lostReasonAt(this.#clock.now());
  }

  lostReasonAt(now: Instant): LockLostReason | undefined {
    if (this.#state.status === 'lost') return this.#state.reason;
    if (this.validForMsAt(now) > 0) return undefined;
    return this.#state.status === 'jeopardy' ? 'store-unavailable' : 'expired';
  }

  lostError(): LockLostError | undefined {
    const reason = this.lostReason;
    if (reason === undefined) return undefined;
    return new LockLostError({ keys: this.keys, reason, fencingToken: this.fencingToken });
  }

  /** A renewal is sent; the store may obey although no answer comes. A shorter TTL counts at once, a longer one for the clean-up. */
  renewalSent(sentAt: Instant, ttlMs: number): void {
    this.#longestTtlMs = Math.max(this.#longestTtlMs, ttlMs);
    if (validityMs(ttlMs, this.#clockDrift) >= this.validForMs) return;
    this.#sentAt = sentAt;
    this.#ttlMs = ttlMs;
  }

  renewed(sentAt: Instant, ttlMs: number): void {
    this.#sentAt = sentAt;
    this.#ttlMs = ttlMs;
    this.#longestTtlMs = ttlMs;
    this.#state = HELD;
  }

  endanger(): void {
    this.#state = { status: 'jeopardy' };
  }

  end(reason: LockLostReason): void {
    this.#state = { status: 'lost', reason };
    this.task?.cancel();
    this.task = undefined;
    if (reason !== 'released') this.#abortWith(reason);
  }

  #abortWith(reason: LockLostReason): void {
    if (this.#abort === undefined || this.#abort.signal.aborted) return;
    const { keys, fencingToken } = this;
    this.#abort.abort(new LockLostError({ keys, reason, fencingToken }));
  }
}
