import type { Section } from './section.js';

/** The lock of a call: its own, or a turn under that of the frame that it stands in. */
export interface Holding {
  readonly section: Section;
  /** Idempotent. Rejects with a `LockLostError` when the lock was lost. */
  finish(): Promise<void>;
  /** Finishes after an error, and gives the error back that the call is to throw. */
  fail(error: unknown): Promise<unknown>;
  /** Receives each step of an iteration, for a frame that has to know whether one is at work. */
  step?(step: Promise<unknown>): void;
}
