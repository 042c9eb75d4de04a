import type { Chain, Linked } from '../collections/chain.js';
import { SLOT_MS, type Task } from '../time/scheduler.js';
import { elapsedMs, type Instant } from '../time/clock.js';
import type { Foundation } from '../lease/foundation.js';
import type { Lease } from '../lease/lease.js';
import type { LockRequest } from '../lease/lock-request.js';
import type { Held, Unavailable } from '../store/lock-store.js';
import type { Contention } from './contention.js';
import { onAbort } from './on-abort.js';

/** Whether a section around the calling code holds a key; for the message of a refusal. */
export type IsHeldAround = (key: string) => boolean;

/** What all callers of a service share. */
export interface CallerDependencies extends Foundation {
  readonly contention: Contention;
  /** What a refusal by the store is called. */
  readonly refusal: (caller: RefusedCall, outcome: Held | Unavailable) => Error;
}

/** What a refusal says of a call. */
export type RefusedCall = Pick<Caller, 'request' | 'waitedMs' | 'isHeldAround'>;

/** The end of a wait that has none. */
const NEVER: Task = { cancel: () => undefined };

/** A call that waits for a lock: until it is granted, the wait is over, or its signal aborts. */
export class Caller implements Linked<Caller> {
  /** The callers of its line, until it is granted the lock or gives up. */
  chain: Chain<Caller> | undefined;
  before: Caller | undefined;
  after: Caller | undefined;
  readonly request: LockRequest;
  readonly granted: Promise<Lease>;
  readonly #since: Instant;
  readonly #deps: CallerDependencies;
  readonly isHeldAround: IsHeldAround;
  /** Set at the first reply of the store. Even a shorter wait lasts until that reply, because it may be a grant. */
  #timeout: Task | undefined;
  readonly #ignoreSignal: (() => void) | undefined;
  /** The last outcome of the store; it decides the error of a wait that times out. */
  #lastOutcome: Held | Unavailable | undefined;
  #over = false;
  #resolve!: (lease: Lease) => void;
  #reject!: (error: unknown) => void;

  constructor(
    request: LockRequest,
    dependencies: CallerDependencies,
    isHeldAround: IsHeldAround,
    since: Instant,
  ) {
    this.request = request;
    this.#deps = dependencies;
    this.isHeldAround = isHeldAround;
    this.#since = since;
    this.granted = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const { signal } = request;
    this.#ignoreSignal =
      signal &&
      onAbort(signal, () => {
        this.fail(signal.reason);
      });
  }

  /** Since it came. */
  get waitedMs(): number {
    return elapsedMs(this.#since, this.#now());
  }

  /** Granted, refused or gone. */
  get isOver(): boolean {
    return this.#over;
  }

  grant(lease: Lease): void {
    this.#forget(lease.heldSince);
    this.#resolve(lease);
  }

  /** Records the outcome that the store returned to the caller's line. */
  learn(outcome: Held | Unavailable): void {
    this.#lastOutcome = outcome;
    if (this.#timeout !== undefined) return;
    const now = this.#now();
    const leftMs = this.request.options.waitMs - elapsedMs(this.#since, now);
    const giveUp = (): void => {
      this.giveUp();
    };
    if (leftMs <= 0) {
      giveUp();
      return;
    }
    this.#timeout =
      leftMs === Infinity ? NEVER : this.#deps.scheduler.schedule(leftMs + SLOT_MS, giveUp, now);
    const { observed } = this.request;
    if (observed !== undefined) observed.hasWaited = true;
    this.#deps.recorder.emit('waiting', this.request, { because: outcome.status });
  }

  /** The wait is over. */
  giveUp(): void {
    const outcome = this.#lastOutcome;
    if (outcome === undefined) return;
    this.fail(this.#deps.refusal(this, outcome));
  }

  fail(error: unknown): void {
    this.#forget(this.#now());
    this.chain?.delete(this);
    this.#reject(error);
  }

  #forget(now: Instant): void {
    if (!this.#over && this.#timeout !== undefined)
      this.#deps.contention.waited(this.request.keys, elapsedMs(this.#since, now), now);
    this.#over = true;
    this.#timeout?.cancel();
    this.#ignoreSignal?.();
  }

  #now(): Instant {
    return this.#deps.scheduler.runtime.now();
  }
}
