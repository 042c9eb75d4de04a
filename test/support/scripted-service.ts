import { Logger } from '@nestjs/common';
import { LockService, type LockEvents, type LockModuleOptions } from 'nestjs-holdfast';
import { ScriptedStore } from './scripted-store.js';
import { VirtualRuntime } from './virtual-runtime.js';
import { storeOption } from '../../lib/options/location.js';

/** A lock service over a store and a clock that the test has in hand, and what the service reports. */
export function scriptedService(options: Omit<LockModuleOptions, 'redis' | 'store'> = {}) {
  Logger.overrideLogger(false); // what it would print is what these tests provoke
  const clock = new VirtualRuntime();
  const store = new ScriptedStore();
  const locks = new LockService(
    { ttl: 1_000, clockDrift: 0, ...options, store: storeOption(store) },
    { runtime: clock },
  );
  const lost: LockEvents['lost'][] = [];
  const released: LockEvents['released'][] = [];
  const refused: LockEvents['refused'][] = [];
  locks.on('lost', (event) => lost.push(event));
  locks.on('released', (event) => released.push(event));
  locks.on('refused', (event) => refused.push(event));
  return { clock, store, locks, lost, released, refused };
}

/** Rejections that nobody handles, from now until the check. */
export function watchRejections(): { readonly expectNone: () => Promise<void> } {
  const seen: unknown[] = [];
  const onRejection = (reason: unknown): void => void seen.push(reason);
  process.on('unhandledRejection', onRejection);
  return {
    async expectNone() {
      // Node reports a rejection after the turn of the event loop in which nobody handled it.
      for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      process.off('unhandledRejection', onRejection);
      if (seen.length > 0) throw new AggregateError(seen, `${seen.length} rejections unhandled`);
    },
  };
}
