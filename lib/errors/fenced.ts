import { LockError } from './lock-error.js';
import { quoteKeys } from './quote-keys.js';

/**
 * A resource has refused a write because it has seen a larger fencing token (HTTP 409): somebody has got the lock since, and has written.
 * Thrown by the application, where its conditional write touched nothing; Holdfast itself never throws it.
 */
export class FencedError extends LockError {
  /** That of the write that was refused. */
  readonly fencingToken: number;

  /** @param facts `resource`: what refused it, for logs: `account 7` */
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
      body: {
        statusCode: 409,
        message: 'This was changed by another request meanwhile. Nothing was changed now.',
        error: 'Conflict',
      },
      detail:
        `A write to ${resource}${under} was refused: its fencing token, ${String(fencingToken)}, is smaller than one that was seen there. ` +
        'A later holder of the lock wrote that.',
      cause,
    });
    this.fencingToken = fencingToken;
  }
}
