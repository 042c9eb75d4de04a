import { setTimeout as sleep } from 'node:timers/promises';
import type { Lock } from '../../../lib/lease/lock.js';
import type { CallNotes } from './call-notes.js';
import { now } from './history.js';

const LOOK_EVERY_MS = 20;

interface Held {
  readonly ask: number;
  readonly mode: string;
  readonly lock: Lock;
  /** Default: as the process does. */
  readonly believes?: (() => boolean) | undefined;
}

/** A lock that a caller has: it looks at it from its first moment to its last. */
export class Holding {
  readonly ask: number;
  readonly mode: string;
  readonly lock: Lock;
  readonly #notes: CallNotes;
  readonly #believes: () => boolean;

  constructor(notes: CallNotes, { ask, mode, lock, believes }: Held) {
    this.lock = lock;
    this.#notes = notes;
    this.#believes = believes ?? (() => notes.believesToHold(lock));
    this.ask = ask;
    this.mode = mode;
    const { fencingToken, keys, signal } = lock;
    const aheadMs = fencingToken / 1_000 - Date.now();
    notes.record({ type: 'granted', ask, keys, fencingToken, aheadMs });
    signal.addEventListener('abort', () => {
      notes.record({ type: 'lost', ask: this.ask, reason: reasonOf(signal.reason) });
    });
  }

  /** Whether it is held. */
  look(): boolean {
    const at = now();
    const held = this.#believes();
    const until = at + this.lock.remainingMs;
    if (held) this.#notes.record({ type: 'held', ask: this.ask, until }, at);
    return held;
  }

  /** For so long, or until it is lost. */
  async last(ms: number, signal?: AbortSignal): Promise<void> {
    const until = now() + ms;
    while (this.look() && signal?.aborted !== true && now() < until) {
      await sleep(Math.max(1, Math.min(LOOK_EVERY_MS, until - now())));
    }
  }

  /** The last look, right before it is given back. */
  end(): void {
    this.#notes.record({ type: 'releasing', ask: this.ask });
  }
}

const reasonOf = (error: unknown): string =>
  String((error as { readonly reason?: unknown } | undefined)?.reason);
