import { createLocks, LockAdmin, type LockEngine } from 'nestjs-holdfast/tools';
import type { Target } from './target.js';

/** For each request: the operator may be far from the server. */
const REQUEST_LIMIT_MS = 3_000;

/** A connection to the locks. */
export class Session {
  readonly admin: LockAdmin;
  readonly locks: LockEngine;
  /** What the library warned of, each once. */
  readonly warnings = new Set<string>();

  constructor({ redis, keyPrefix }: Target) {
    const warn = (message: unknown): void => void this.warnings.add(String(message));
    this.locks = createLocks(
      { redis: redis.locations, keyPrefix, nodeTimeout: REQUEST_LIMIT_MS },
      { warn, error: warn },
    );
    this.admin = new LockAdmin(this.locks);
  }

  async close(): Promise<void> {
    await this.locks.shutdown(0);
  }
}
