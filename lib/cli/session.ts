import { LockAdmin } from '../admin/lock-admin.js';
import { LockEngine } from '../engine/lock-engine.js';
import type { Runtime } from '../time/runtime.js';
import type { Target } from './target.js';

/** For each request: the operator may be far from the server. */
const REQUEST_LIMIT_MS = 3_000;

/** A connection to the locks, without an instance record: this process holds nothing. */
export class Session {
  readonly admin: LockAdmin;
  readonly engine: LockEngine;
  /** What the library warned of, each once. */
  readonly warnings = new Set<string>();

  constructor({ locations, keyPrefix }: Target, runtime: Runtime) {
    const warn = (message: unknown): void => void this.warnings.add(String(message));
    this.engine = new LockEngine(
      { redis: locations, keyPrefix, nodeTimeout: REQUEST_LIMIT_MS, instance: false },
      { runtime, log: { warn, error: warn } },
    );
    this.admin = new LockAdmin(this.engine);
  }

  async close(): Promise<void> {
    await this.engine.shutdown(0);
  }
}
