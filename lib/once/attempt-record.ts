import { LockConfigurationError } from '../errors.js';
import type { Foundation } from '../lease/foundation.js';
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
  readonly #ttlMs: number;
  /** How long the record lasts unless it is extended, in ms. */
  readonly #lifeMs: number;
  /** 0 until it has begun. */
  #number = 0;
  /** The next extension. */
  #task: Task | undefined;

  /** @throws LockConfigurationError for a lock of several keys */
  constructor(
    { keys, lease: { token, ttlMs }, fencingToken }: LockHandle,
    options: ResolvedOnceOptions,
    foundation: Foundation,
  ) {
    const [key = ''] = keys;
    if (keys.length !== 1)
      throw new LockConfigurationError(
        `Work that is to be done once has one key, not ${String(keys.length)}: it is what the work is called by.`,
      );
    this.#attempt = { key, token, owner: foundation.scheduler.runtime.uuid(), fencingToken };
    this.#options = options;
    this.#foundation = foundation;
    this.#ttlMs = ttlMs;
    this.#lifeMs = LIFE_TTLS * ttlMs + options.keepDoneMs;
  }

  begin(): Promise<BeginOutcome> {
    const { attempts, keepDoneMs: keepMs } = this.#options;
    const { once } = this.#foundation.store;
    return once.begin({ ...this.#attempt, attempts, lifeMs: this.#lifeMs, keepMs });
  }

  /** Keeps the record of an attempt that has begun: work may take longer than that lasts. */
  keepAlive(attempt: number): void {
    this.#number = attempt;
    const { store, scheduler } = this.#foundation;
    const delayMs = this.#ttlMs + this.#options.keepDoneMs / 2;
    this.#task = scheduler.schedule(delayMs, () => {
      const request = { ...this.#attempt, attempt, lifeMs: this.#lifeMs };
      void store.once.keep(request).then(({ status }) => {
        if (!this.isEnding && status !== 'superseded') this.keepAlive(attempt);
      });
    });
  }

  /** Extends the record no more. */
  leave(): void {
    this.isEnding = true;
    this.#task?.cancel();
  }

  end(end: AttemptEnd, text?: string): Promise<FinishOutcome> {
    const isOver = end === 'done' || end === 'final';
    const lifeMs = isOver ? this.#options.keepDoneMs : this.#lifeMs;
    const { once } = this.#foundation.store;
    return once.finish({ ...this.#attempt, attempt: this.#number, end, text, lifeMs });
  }
}
