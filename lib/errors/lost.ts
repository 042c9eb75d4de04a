import { LockError } from './lock-error.js';
import { keysWere, quoteKeys } from './quote-keys.js';

/** Why a lock is no longer held, although it was not released through its handle. */
export type LockLossReason =
  /** The validity ran out: no renewal was asked for, or the event loop was blocked past the deadline. */
  | 'expired'
  /** The store holds the token of another holder. */
  | 'stolen'
  /** An operator ended it (`LockAdmin.release`). `intervention` has the operator and the reason. */
  | 'force-released'
  /** A newer call with `onLocked: 'replace'` took its place. `intervention` has that call. */
  | 'replaced'
  /** The key was removed from the store while the validity still ran: deletion or data loss, for instance. */
  | 'released-elsewhere'
  /** The store did not reply before the validity ran out. */
  | 'store-unavailable'
  /** `maxHold` was reached. */
  | 'max-hold'
  /** The lock was never released, and its handle and its signal were garbage (`forgottenLocks`). */
  | 'forgotten'
  /** The application shut down and its drain time was over. */
  | 'shutdown';

/** What an operator, or a newer call, did to a lock, and why. */
export interface Intervention {
  /** The operator, or the method and process of the newer call. */
  readonly by: string;
  readonly reason: string;
}

/** Why a handle protects nothing. */
export type LockLostReason =
  | LockLossReason
  /** `release()` was called: the handle is no longer a lock. */
  | 'released'
  /** `detach()` was called: the process that attaches the lock holds it. */
  | 'detached'
  /** `LockService.assertHeld`: the calling code does not run under the lock at all. */
  | 'not-held';

const LOST_SENTENCE: Readonly<Record<LockLostReason, string>> = {
  expired: 'its validity ran out before it was renewed',
  stolen: 'another owner holds it now',
  'force-released': 'an operator released it by force',
  replaced: 'a newer call has taken its place',
  'released-elsewhere':
    'it is no longer in the store (released by force, deleted, evicted, or the store lost its data)',
  'store-unavailable': 'the store did not confirm a renewal before the validity ran out',
  'max-hold': 'it was held for longer than "maxHold"',
  forgotten: 'it was never released, and no code could release it any more',
  shutdown: 'the application shut down before the work ended',
  released: 'it was released already',
  detached: 'it was detached: the process that attaches the text from detach() holds it',
  'not-held':
    'the code that called assertHeld() does not run in a section that holds it, or that section is over. Is an await missing in its work?',
};

const LOST_TO_CLIENT =
  'The lock was lost while the work ran. The work may have taken effect: check before you try again.';
const REPLACED_TO_CLIENT = 'A newer request has taken the place of this one.';

/**
 * The lock was held and is no longer held (HTTP 409). The work under it may have taken effect, partly or completely,
 * and another holder may already be at work. `reason` tells why. With the reason `'replaced'`, `code` is `LOCK_REPLACED`.
 */
export class LockLostError extends LockError {
  readonly reason: LockLostReason;
  readonly fencingToken: number | undefined;
  /** The operator that released it by force, or the newer call that replaced it, and the reason, if that is why it was lost. */
  readonly intervention: Intervention | undefined;

  constructor(facts: {
    readonly keys: readonly string[];
    readonly reason: LockLostReason;
    readonly fencingToken?: number | undefined;
    readonly intervention?: Intervention | undefined;
    /** What it is called in the message. */
    readonly lock?: string | undefined;
    readonly cause?: unknown;
  }) {
    const { by, reason } = facts.intervention ?? {};
    const who = by === undefined ? '' : ` (${by}: ${String(reason)})`;
    super({
      code: facts.reason === 'replaced' ? 'LOCK_REPLACED' : 'LOCK_LOST',
      keys: facts.keys,
      clientMessage: facts.reason === 'replaced' ? REPLACED_TO_CLIENT : LOST_TO_CLIENT,
      detail:
        facts.reason === 'not-held'
          ? `${keysWere(facts.keys)} expected to be held, but ${LOST_SENTENCE[facts.reason]}`
          : `${keysWere(facts.keys)} lost: ${LOST_SENTENCE[facts.reason]}${who}. The work done under it may have taken effect; ` +
            'check before you repeat it, and let the resource refuse old fencing tokens.',
      message: (lock) =>
        facts.reason === 'not-held'
          ? `The ${lock} was expected to be held, but ${LOST_SENTENCE[facts.reason]}`
          : `The ${lock} was lost: ${LOST_SENTENCE[facts.reason]}.`,
      lock: facts.lock,
      cause: facts.cause,
    });
    this.reason = facts.reason;
    this.fencingToken = facts.fencingToken;
    this.intervention = facts.intervention;
  }
}

/**
 * A resource refused a write because it has seen a larger fencing token (HTTP 409): a later holder of the lock has
 * written. The application throws it when its conditional write changed nothing; Holdfast never throws it.
 *
 * @example
 * ```ts
 * import { LockFencedError } from 'nestjs-holdfast';
 *
 * await locks.run('account:7', async ({ fencingToken, keys }) => {
 *   const update = 'UPDATE accounts SET fence = $1 WHERE id = 7 AND fence <= $1';
 *   const { rowCount } = await db.query(update, [fencingToken]);
 *   if (rowCount === 0) throw new LockFencedError({ resource: 'account 7', fencingToken, keys });
 * });
 * ```
 */
export class LockFencedError extends LockError {
  /** The token of the write that was refused. */
  readonly fencingToken: number;

  /** @param facts `resource`: the resource that refused it, for logs, such as `account 7` */
  constructor(facts: {
    readonly fencingToken: number;
    readonly keys?: readonly string[];
    readonly resource?: string;
    readonly cause?: unknown;
  }) {
    const { fencingToken, keys = [], resource = 'the resource', cause } = facts;
    const under = keys.length > 0 ? ` under the lock of ${quoteKeys(keys)}` : '';
    super({
      code: 'LOCK_FENCED',
      keys,
      clientMessage: 'This was changed by another request meanwhile. Nothing was changed now.',
      detail:
        `A write to ${resource}${under} was refused: its fencing token, ${String(fencingToken)}, is smaller than one that was ` +
        'seen there. A later holder of the lock wrote that.',
      cause,
    });
    this.fencingToken = fencingToken;
  }
}
