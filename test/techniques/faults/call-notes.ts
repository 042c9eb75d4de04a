import { LockError } from '../../../lib/errors.js';
import type { Lock } from '../../../lib/lease/lock.js';
import type { CallEvent, Recorder } from './history.js';

type WithoutCaller<Event> = Event extends unknown ? Omit<Event, 'at' | 'client'> : never;

interface CallNotesOptions {
  readonly recorder: Recorder;
  /** Unlike that of any other process of the run. */
  readonly client: string;
  /** Default: what the lock says. */
  readonly believesToHold?: ((lock: Lock) => boolean) | undefined;
}

/** What the callers of a process write down. */
export class CallNotes {
  readonly client: string;
  readonly believesToHold: (lock: Lock) => boolean;
  readonly #recorder: Recorder;
  #asks = 0;

  constructor({ recorder, client, believesToHold = (lock) => lock.isHeld }: CallNotesOptions) {
    this.client = client;
    this.believesToHold = believesToHold;
    this.#recorder = recorder;
  }

  /** The number of the next call, or of the next part of a hold. */
  nextAsk(): number {
    return (this.#asks += 1);
  }

  record(event: WithoutCaller<CallEvent>, at?: number): void {
    this.#recorder.record({ client: this.client, ...event }, at);
  }

  failed(ask: number, error: unknown): void {
    const isRefusal = error instanceof LockError && error.code === 'LOCK_NOT_ACQUIRED';
    if (isRefusal) this.record({ type: 'refused', ask });
    else this.record({ type: 'failed', ask, error: errorName(error) });
  }
}

export const errorName = (error: unknown): string =>
  error instanceof Error ? error.name : String(error);
