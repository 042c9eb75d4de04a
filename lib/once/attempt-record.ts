import { LockConfigurationError } from '../errors.js';
import type { Foundation } from '../lease/foundation.js';
import type { Lease } from '../lease/lease.js';
import type { LockHandle } from '../lease/lock-handle.js';
import type {
  AttemptEnd,
  BeginOutcome,
  FinishOutcome,
  OnceReference,
} from '../store/once-store.js';
import type { Task } from '../time/scheduler.js';
import type { ResolvedOnceOptions } from './once-options.js';

/**
 * The record of an attempt outlives the lease of a process that died in it by this many TTLs and `keepDone`: the next
 * caller in line has to find it.
 */
const LIFE_TTLS = 3;

/** The record, in the store, of one attempt of this process. */
export class AttemptRecord {
  /** Whether its end is being sent, or was sent. */
  isEnding = false;
  wasReturned = false;
  readonly #attempt: OnceReference;
  readonly #options: ResolvedOnceOptions;
  readonly #foundation: Foundation;
  readonly #lease: Lease;
  /** The TTL of the lease that the record is kept for; 0 if it is unknown whether it was kept. */
  #ttlMs = 0;
  /** 0 until it has begun. */
  #number = 0;
  /** The next extension. */
  #task: Task | undefined;

  /** @throws LockConfigurationError for a lock of several keys */
  constructor(
    { keys, lease, fencingToken }: LockHandle,
    options: ResolvedOnceOptions,
    foundation: Foundation,
  ) {
    const [key = ''] = keys;
    if (keys.length !== 1)
      throw new LockConfigurationError(
        `Work that is to be done once has one key, not ${String(keys.length)}: it is what the work is called by.`,
      );
    const owner = foundation.scheduler.runtime.uuid();
    this.#attempt = { key, token: lease.token, owner, fencingToken };
    this.#options = options;
    this.#foundation = foundation;
    this.#lease = lease;
  }

  get key(): string {
    return this.#attempt.key;
  }

  begin(): Promise<BeginOutcome> {
    const { attempts, keepDoneMs: keepMs } = this.#options;
    const { once } = this.#foundation.store;
    return once.begin({ ...this.#attempt, attempts, lifeMs: this.#newLifeMs(), keepMs });
  }

  /** Keeps the record of an attempt that has begun: work may take longer than that lasts. */
  keepAlive(attempt: number): void {
    this.#number = attempt;
    this.#plan();
  }

  /** The lease was renewed. The work may have extended it beyond the record. */
  renewed(): void {
    if (this.#lease.longestTtlMs > this.#ttlMs) this.#keep();
  }

  /** Extends the record no more. */
  leave(): void {
    this.isEnding = true;
    this.#task?.cancel();
  }

  end(end: AttemptEnd, text?: string): Promise<FinishOutcome> {
    const isOver = end === 'done' || end === 'final';
    const lifeMs = isOver ? this.#options.keepDoneMs : this.#newLifeMs();
    const { once } = this.#foundation.store;
    return once.finish({ ...this.#attempt, attempt: this.#number, end, text, lifeMs });
  }

  #plan(): void {
    this.#task?.cancel();
    const delayMs = this.#ttlMs + this.#options.keepDoneMs / 2;
    this.#task = this.#foundation.scheduler.schedule(delayMs, () => {
      this.#keep();
    });
  }

  #keep(): void {
    const request = { ...this.#attempt, attempt: this.#number, lifeMs: this.#newLifeMs() };
    void this.#foundation.store.once.keep(request).then(({ status }) => {
      if (status === 'unavailable') this.#ttlMs = 0;
      if (!this.isEnding && status !== 'superseded') this.#plan();
    });
  }

  /** How long the record lasts from now on unless it is extended, in ms. */
  #newLifeMs(): number {
    this.#ttlMs = this.#lease.longestTtlMs;
    return LIFE_TTLS * this.#ttlMs + this.#options.keepDoneMs;
  }
}
