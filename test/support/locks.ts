import { LockEngine } from '../../lib/engine/lock-engine.js';
import type { Machine } from '../../lib/engine/machine.js';
import type { LockModuleOptions } from '../../lib/options/lock-module-options.js';
import { systemRuntime, type Runtime } from '../../lib/time/runtime.js';

const nobodyReads = (): void => undefined;

/**
 * What a process of a test locks with: the engine, without Nest, which would take three quarters of a second of a core to load. Its log
 * goes nowhere.
 */
export class Locks extends LockEngine {
  /** @param machine what other services know it by; default: they do not know it, and cannot send it messages */
  constructor(options: LockModuleOptions, runtime: Runtime = systemRuntime, machine?: Machine) {
    super(options, { runtime, machine, log: { warn: nobodyReads, error: nobodyReads } });
  }
}
