import { setTimeout as sleep } from 'node:timers/promises';
import { LockError } from '../../lib/errors.js';
import type { Lock } from '../../lib/lease/lock.js';
import { type CallNotes, errorName } from './call-notes.js';
import { now } from './history.js';

/** Has a lock go on in another mode, in the middle of its section. */
export interface ModeChange {
  /** Since the one before, or since the section began. */
  readonly afterMs: number;
  readonly to: 'exclusive' | 'upgradeable' | 'shared';
  /** For those who hold the keys beside it. */
  readonly waitMs?: number;
  /** It gives up after so long. */
  readonly patienceMs?: number;
}

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
  readonly lock: Lock;
  readonly #notes: CallNotes;
  readonly #believes: () => boolean;
  #ask: number;
  #mode: string;

  constructor(notes: CallNotes, { ask, mode, lock, believes }: Held) {
    this.lock = lock;
    this.#notes = notes;
    this.#believes = believes ?? (() => notes.believesToHold(lock));
    this.#ask = ask;
    this.#mode = mode;
    const { fencingToken, keys, signal } = lock;
    const aheadMs = fencingToken / 1_000 - Date.now();
    notes.record({ type: 'granted', ask, keys, fencingToken, aheadMs });
    signal.addEventListener('abort', () => {
      notes.record({ type: 'lost', ask: this.#ask, reason: reasonOf(signal.reason) });
    });
  }

  /** Another one in each mode. */
  get ask(): number {
    return this.#ask;
  }

  get mode(): string {
    return this.#mode;
  }

  /** Whether it is held. */
  look(): boolean {
    const at = now();
    const held = this.#believes();
    const until = at + this.lock.remainingMs;
    if (held) this.#notes.record({ type: 'held', ask: this.#ask, until }, at);
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
    this.#lookAtMode();
    this.#notes.record({ type: 'releasing', ask: this.#ask });
  }

  /** Never rejects: what went wrong is in the history. Each change begins a part of the hold with a number of its own. */
  async change(change: ModeChange): Promise<void> {
    if (change.to === this.#mode) return;
    if (change.to === 'exclusive') await this.#upgrade(change);
    else if (this.#mode !== 'shared') await this.#downgrade(change.to);
    this.#lookAtMode();
  }

  async #upgrade({ waitMs = 0, patienceMs }: ModeChange): Promise<void> {
    const notes = this.#notes;
    const ask = notes.nextAsk();
    const holds = this.#mode;
    const giveUp = new AbortController();
    const timer =
      patienceMs === undefined ? undefined : setTimeout(() => giveUp.abort(), patienceMs);
    notes.record({
      ...{ type: 'ask', ask, how: 'upgrade', keys: this.lock.keys, mode: 'exclusive', holds },
      waitMs: Math.min(waitMs, patienceMs ?? Infinity),
    });
    try {
      await this.#lookWhile(this.lock.upgrade({ wait: waitMs, signal: giveUp.signal }));
      this.#changed(ask, 'exclusive');
    } catch (error) {
      notes.failed(ask, error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** "A downgrade counts from its call on." */
  async #downgrade(to: 'shared' | 'upgradeable'): Promise<void> {
    if (!this.lock.isHeld) return;
    this.#changed(this.#notes.nextAsk(), to);
    try {
      await this.#lookWhile(this.lock.downgrade({ to }));
    } catch (error) {
      if (!(error instanceof LockError)) throw error;
      this.#notes.record({ type: 'not-changed', ask: this.#ask, error: errorName(error) });
    }
  }

  #changed(ask: number, mode: string): void {
    const { keys, fencingToken } = this.lock;
    this.look();
    const continues = this.#ask;
    this.#notes.record({ type: 'changed', ask, continues, keys, mode, fencingToken });
    this.#ask = ask;
    this.#mode = mode;
    this.look();
  }

  async #lookWhile(pending: Promise<unknown>): Promise<void> {
    const timer = setInterval(() => this.look(), LOOK_EVERY_MS);
    try {
      await pending;
    } finally {
      clearInterval(timer);
    }
  }

  #lookAtMode(): void {
    const { isHeld, mode } = this.lock;
    if (isHeld) this.#notes.record({ type: 'mode', ask: this.#ask, mode });
  }
}

const reasonOf = (error: unknown): string =>
  String((error as { readonly reason?: unknown } | undefined)?.reason);
