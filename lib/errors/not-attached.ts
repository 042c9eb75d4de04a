import { LockError } from './lock-error.js';
import { keysWere } from './quote-keys.js';

/** Why a lock that was detached cannot be attached. */
export type NotAttachedReason =
  /** The lock was attached, and is held. */
  | 'attached'
  /** The time of `detach()` is over: the lock was not attached in time, or it was attached and has ended since. */
  | 'expired'
  /** The lock was not attached in time, or it was ended, and a key was granted to another caller since. */
  | 'stolen'
  /**
   * The lock ended before its time: it was attached and released, released by force or deleted, or the store lost its data.
   */
  | 'released-elsewhere';

const SENTENCE: Readonly<Record<NotAttachedReason, string>> = {
  attached: 'another process attached it already, and holds it',
  expired: 'it was not attached in time, or was attached and has ended since',
  stolen: 'it is over, and another owner was granted it since',
  'released-elsewhere':
    'it is no longer in the store (attached and released already, released by force, deleted, evicted, or the store lost its data)',
};

const IS_HELD = 'The text works once: leave the work to the process that has it.';

const IS_OVER =
  'Acquire it anew if the work is still to be done, and give detach({ ttl }) as long as the text may be on its way.';

/** A lock that was detached cannot be attached (HTTP 409). Nothing is held, and no work ran under it here. */
export class LockNotAttachedError extends LockError {
  readonly reason: NotAttachedReason;
  readonly fencingToken: number;

  constructor(facts: {
    readonly keys: readonly string[];
    readonly reason: NotAttachedReason;
    readonly fencingToken: number;
  }) {
    const { keys, reason, fencingToken } = facts;
    const isHeld = reason === 'attached';
    super({
      code: 'LOCK_NOT_ATTACHED',
      keys,
      clientMessage: isHeld
        ? 'Another process has taken this over already.'
        : 'This came too late: its lock is no longer held.',
      message: (lock) => `The ${lock} was not attached: ${SENTENCE[reason]}.`,
      detail: `${keysWere(keys)} not attached: ${SENTENCE[reason]}. ${isHeld ? IS_HELD : IS_OVER}`,
    });
    this.reason = reason;
    this.fencingToken = fencingToken;
  }
}
