import { LockError } from './lock-error.js';
import { quoteKeys } from './quote-keys.js';

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
        `A write to ${resource}${under} was refused: its fencing token, ${String(fencingToken)}, is smaller than one that was seen there. ` +
        'A later holder of the lock wrote that.',
      cause,
    });
    this.fencingToken = fencingToken;
  }
}
