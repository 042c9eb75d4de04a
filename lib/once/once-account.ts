import { onAbort } from '../queue/on-abort.js';
import type { Unavailable } from '../store/lock-store.js';
import type { AttemptEnd, BeginOutcome, FinishOutcome, OnceStore } from '../store/once-store.js';
import { backOffMs, type BackOff } from '../time/back-off.js';
import type { Scheduler } from '../time/scheduler.js';
import type { Running } from './running.js';

/** The pause between two tries to reach the store. */
const RETRY: BackOff = { firstMs: 50, longestMs: 1_000 };

/** A begin is tried this often: one reply may have been lost. */
export const BEGIN_TRIES = 2;

/**
 * The record of work that is to be done once, in the store: reads and writes it, and tries again when there is no
 * reply.
 */
export class OnceAccount {
  readonly #owner: { readonly once: OnceStore };
  readonly #scheduler: Scheduler;
  readonly #closing = new AbortController();

  constructor(owner: { readonly once: OnceStore }, scheduler: Scheduler) {
    this.#owner = owner;
    this.#scheduler = scheduler;
  }

  get store(): OnceStore {
    return this.#owner.once;
  }

  begin({ reference, options, lifeMs }: Running): Promise<BeginOutcome> {
    const { attempts, keepDoneMs } = options;
    return this.store.begin({ ...reference, attempts, lifeMs, keepMs: keepDoneMs });
  }

  tell(running: Running, end: AttemptEnd, text?: string): Promise<FinishOutcome> {
    const { reference, attempt, lifeMs, options } = running;
    const isOver = end === 'done' || end === 'final';
    return this.store.finish({
      ...reference,
      attempt,
      end,
      text,
      lifeMs: isOver ? options.keepDoneMs : lifeMs,
    });
  }

  /** Work may take longer than its record lasts. */
  keepAlive(running: Running): void {
    const { reference, attempt, lifeMs, options, ttlMs } = running;
    running.task = this.#scheduler.schedule(ttlMs + options.keepDoneMs / 2, () => {
      void this.store.keep({ ...reference, attempt, lifeMs }).then(({ status }) => {
        if (!running.isEnding && status !== 'superseded') this.keepAlive(running);
      });
    });
  }

  /** Tries again while there is no reply and `isWorth` returns true. */
  async insist<Outcome extends { readonly status: string }>(
    isWorth: (tries: number) => boolean,
    ask: () => Promise<Outcome | Unavailable>,
  ): Promise<Outcome | Unavailable> {
    for (let tries = 1; ; tries += 1) {
      const outcome = await ask();
      const { signal } = this.#closing;
      if (outcome.status !== 'unavailable' || !isWorth(tries) || signal.aborted) return outcome;
      await this.#pause(backOffMs(RETRY, tries - 1));
    }
  }

  /** Ends all further tries. */
  close(): void {
    this.#closing.abort();
  }

  /** Ends early when the service closes. */
  async #pause(ms: number): Promise<void> {
    const { signal } = this.#closing;
    await new Promise<void>((resolve) => {
      const over = (): void => {
        task.cancel();
        ignore();
        resolve();
      };
      const task = this.#scheduler.schedule(ms, over);
      const ignore = onAbort(signal, over);
    });
  }
}
