import { quoteKeys } from './quote-keys.js';
import { LockError } from './lock-error.js';

/** What `NodeFailure.node` is for a `LockDriver`. */
export const DRIVER_NODE = 'driver';

/** The failure of one node of the store. */
export interface NodeFailure {
  /** `host:port`, never with credentials; `'driver'` for a `LockDriver`. */
  readonly node: string;
  /**
   * The kind of failure:
   * - `'timeout'`: no reply in time
   * - `'connection'`: not connected, or the connection broke
   * - `'error'`: it replied with an error
   * - `'refused'`: it is reachable, and did not vote for the lock
   */
  readonly kind: 'timeout' | 'connection' | 'error' | 'refused';
  /** Without credentials. */
  readonly message: string;
}

/**
 * The store did not reply, so it is unknown whether the lock is free (HTTP 503). Nothing runs unlocked: the call
 * failed. What it may have left in the store is cleaned up when the store replies again.
 */
export class LockStoreUnavailableError extends LockError {
  readonly nodes: readonly NodeFailure[];

  constructor(facts: {
    readonly operation: string;
    readonly keys: readonly string[];
    readonly nodes: readonly NodeFailure[];
    /** What it is called in the message. */
    readonly lock?: string | undefined;
  }) {
    const what = facts.nodes
      .map(({ node, kind, message }) => `${node} (${kind}): ${message}`)
      .join('; ');
    const kinds = new Set(facts.nodes.map(({ kind }) => kind));
    let remedy = 'Try again later.';
    if (facts.nodes.some(({ node }) => node === DRIVER_NODE))
      remedy = 'Check the database of the driver and try again.';
    else if (kinds.has('timeout') || kinds.has('connection'))
      remedy = 'Check that Redis is reachable and try again.';
    else if (!kinds.has('refused'))
      remedy = 'Redis is reachable, but answered with an error: that must be fixed first.';
    const nothingRan = facts.operation === 'acquire' ? 'No work ran without the lock. ' : '';
    const target = facts.keys.length === 0 ? 'the lock store' : quoteKeys(facts.keys);
    super({
      code: 'LOCK_STORE_UNAVAILABLE',
      keys: facts.keys,
      clientMessage: 'The lock store is not available. Try again later.',
      message: (lock) =>
        facts.keys.length === 0
          ? 'The lock store is not available.'
          : `Could not ${facts.operation} the ${lock}: the lock store is not available.`,
      lock: facts.lock,
      retryAfterMs: Infinity,
      detail:
        `Could not ${facts.operation} ${target}: the lock store is not available (${what}). ` +
        `${nothingRan}${remedy}`,
    });
    this.nodes = facts.nodes;
  }
}
