import { isMainThread } from 'node:worker_threads';
import { elapsedMs } from '../time/clock.js';
import type { LockService } from './lock.service.js';

/** `main.ts` may call `enableShutdownHooks` after `listen`. It has done so when this time has passed. */
const STARTED_MS = 10_000;

/** The first sends orchestrators, process managers and `nest start --watch`, the second a terminal. */
const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** Applications whose signals were looked at. One application may have several services. */
const looked = new WeakSet();

/**
 * Warns once if an application takes locks, and nothing would release them when its process is asked to end. Nest does
 * not report whether its shutdown hooks are enabled. But they listen for signals, as all other code does that ends a
 * process in order. Without a listener, Node ends the process at once, or never as process 1 of a container.
 *
 * @param application an object that all services of an application share
 */
export function warnOfUnhandledSignals(
  service: LockService,
  application: object,
  warn: (message: string) => void,
): void {
  // Worker threads get no signals, and a test ends its process by other means.
  if (!service.outlivesProcess || !isMainThread || process.env.NODE_ENV === 'test') return;
  const { runtime } = service;
  const bootstrapped = runtime.now();
  const forget = service.on('acquired', () => {
    if (elapsedMs(bootstrapped, runtime.now()) < STARTED_MS) return;
    forget();
    if (looked.has(application)) return;
    looked.add(application);
    if (SIGNALS.some((signal) => process.listenerCount(signal) > 0)) return;
    warn(
      'Nothing in this process listens for SIGTERM or SIGINT. When it is stopped, its locks stay taken until their TTL is over. ' +
        'Call app.enableShutdownHooks() in main.ts.',
    );
  });
}
