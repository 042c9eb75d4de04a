import { LockEngine } from '../../lib/engine/lock-engine.js';
import type { LockModuleOptions } from '../../lib/options/lock-module-options.js';
import { ScriptedStore } from '../support/scripted-store.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';
import { storeOption } from '../../lib/options/location.js';

/** An engine over a store and a clock that the test has in hand, and what it logs. */
export function scriptedEngine(options: Omit<LockModuleOptions, 'redis' | 'store'> = {}) {
  const clock = new VirtualRuntime();
  const store = new ScriptedStore();
  const warnings: string[] = [];
  const errors: unknown[][] = [];
  const locks = new LockEngine(
    { ttl: 1_000, clockDrift: 0, ...options, store: storeOption(store) },
    {
      runtime: clock,
      log: {
        warn: (message) => void warnings.push(message),
        error: (...said) => void errors.push(said),
      },
    },
  );
  return { clock, store, locks, warnings, errors };
}
