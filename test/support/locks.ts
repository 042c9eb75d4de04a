import { LockEngine } from '../../lib/engine/lock-engine.js';
import type { LockModuleOptions } from '../../lib/options/lock-module-options.js';
import { systemRuntime, type Runtime } from '../../lib/time/runtime.js';

const nobodyReads = (): void => undefined;

/**
 * What a process of a test locks with: the engine, without Nest, which would take three quarters of a second of a core to load. Its log
 * goes nowhere.
 */
export class Locks extends LockEngine {
  constructor(options: LockModuleOptions, runtime: Runtime = systemRuntime) {
    super(options, { runtime, log: { warn: nobodyReads, error: nobodyReads } });
  }
}
