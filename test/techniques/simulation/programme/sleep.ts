import type { Runtime } from '../../../../lib/time/runtime.js';

/** For so long, or until the signal aborts. */
export function sleep(runtime: Runtime, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) {
      resolve();
      return;
    }
    const cancel = runtime.setTimer(() => {
      signal?.removeEventListener('abort', wake);
      resolve();
    }, ms);
    const wake = (): void => {
      cancel();
      resolve();
    };
    signal?.addEventListener('abort', wake, { once: true });
  });
}
