import type { LineCall, LockStore } from '../store/lock-store.js';
import { elapsedMs, type Instant } from '../time/clock.js';
import type { Runtime } from '../time/runtime.js';

/** Where releases cannot be reported, we ask again this often whether they can by now. */
const SUBSCRIBE_AGAIN_MS = 5_000;

/** Receives the notifications of releases. */
export interface ReleaseHandler {
  wake(keys: readonly string[]): void;
  /** The store calls a waiter in its line. */
  called(key: string, call: LineCall): void;
  /** Whether releases are reported has changed: earlier reports may have been missed. */
  lookAll(): void;
}

/** Whether this process is notified of releases, and how. Opened at the first wait. */
export class ReleaseSubscription {
  readonly #store: LockStore;
  readonly #runtime: Runtime;
  readonly #handler: ReleaseHandler;
  #opening: Promise<boolean> | undefined;
  #refusedSince: Instant | undefined;
  #isOpen = false;

  constructor(store: LockStore, runtime: Runtime, handler: ReleaseHandler) {
    this.#store = store;
    this.#runtime = runtime;
    this.#handler = handler;
  }

  /** Whether releases are reported to this process. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /**
   * Opens the subscription. After a failure it tries again from time to time. Resolves with whether releases are
   * reported from now on.
   */
  open(): Promise<boolean> {
    const since = this.#refusedSince;
    if (since && elapsedMs(since, this.#runtime.now()) > SUBSCRIBE_AGAIN_MS) {
      this.#refusedSince = undefined;
      this.#opening = undefined;
    }
    this.#opening ??= this.#open();
    return this.#opening;
  }

  async #open(): Promise<boolean> {
    const answer = await this.#store.listen(
      (key, call) => {
        if (key === undefined) this.#changed(true);
        else if (call === undefined) this.#handler.wake([key]);
        else this.#handler.called(key, call);
      },
      () => {
        this.#changed(false);
      },
    );
    this.#isOpen = answer === 'listening';
    if (!this.#isOpen) this.#refusedSince = this.#runtime.now();
    return this.#isOpen;
  }

  /** While releases are not reported, lines look by themselves; when they are again, all of them do. */
  #changed(isOpen: boolean): void {
    this.#isOpen = isOpen;
    this.#opening = Promise.resolve(isOpen);
    this.#refusedSince = undefined;
    this.#handler.lookAll();
  }
}
