import type { Lock } from 'nestjs-holdfast';
import type { ExecutionResult, ExecutionStats } from './errors.js';
import type { Redlock } from './redlock.js';

/** A lock of `Redlock.acquire`. */
export class RedlockLock {
  readonly redlock: Redlock;
  readonly resources: string[];
  /** The fencing token. Owner tokens of Holdfast are never disclosed. */
  readonly value: string;
  readonly attempts: readonly Promise<ExecutionStats>[];
  /** In ms since 1970; 0 when it was released or extended: after `extend`, use the lock that it returned. */
  expiration: number;
  /** @internal */
  readonly held: Lock;

  /** @internal */
  constructor(
    redlock: Redlock,
    held: Lock,
    attempts: readonly Promise<ExecutionStats>[],
    expiration: number,
  ) {
    this.redlock = redlock;
    this.resources = [...held.keys];
    this.value = String(held.fencingToken);
    this.attempts = attempts;
    this.expiration = expiration;
    this.held = held;
  }

  release(): Promise<ExecutionResult> {
    return this.redlock.release(this);
  }

  extend(duration: number): Promise<RedlockLock> {
    return this.redlock.extend(this, duration);
  }
}
