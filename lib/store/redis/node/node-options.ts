import type { WhileDown } from '../client/readiness.js';
import type { LinePlace } from '../../lock-store.js';
import type { ReplicaOptions } from './acknowledged-writes.js';
import type { RestartGuard } from './probe.js';

export interface RedisNodeOptions {
  readonly keyPrefix: string;
  /** The longest time that one request may take. */
  readonly nodeTimeoutMs: number;
  /** The largest difference in speed of clocks, as a fraction. */
  readonly clockDrift: number;
  /** A fence outlives its lease by this; the largest step back of the server's clock that tokens survive. */
  readonly fenceKeepMs: number;
  readonly restartGuard?: RestartGuard | undefined;
  readonly replicas?: ReplicaOptions | undefined;
  /** How many fencing tokens to reserve with each lease. */
  readonly turns: number;
  /** Told what the operator should know. */
  readonly warn: (message: string) => void;
}

/** How a lease is released. */
export interface ReleaseManner {
  /**
   * Which callers in line are notified. Default: all that the release may concern. `'nobody'`: the callers that this
   * vote refused have a reason of their own to try again.
   */
  readonly wakes?: 'nobody';
  /** The last fencing token that was used under it. */
  readonly lastToken?: number | undefined;
  /** The line that it leaves at the same time. */
  readonly leaves?: LinePlace | undefined;
  /** For how many ms the keys stay taken. */
  readonly keepMs?: number | undefined;
  /** Default `'fails'`: the clean-up tries again later. */
  readonly whileDown?: WhileDown;
}
