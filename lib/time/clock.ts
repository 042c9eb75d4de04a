/** A moment, read from both clocks at once. */
export interface Instant {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** Cancels a timer. */
export interface CancelTimer {
  (): void;
  /** Decides whether the timer keeps the process running until it fires. Missing where that cannot be decided later. */
  readonly keepRunning?: (isNeeded: boolean) => void;
}

/** Where the library has time from; tests give one of their own. With chance and ids it is a `Runtime`. */
export interface Clock {
  now(): Instant;
  /** Calls back once, after `delayMs` of any length. One in the `'background'` does not keep the process running. */
  setTimer(callback: () => void, delayMs: number, where?: 'background'): CancelTimer;
}

/** Node keeps delays in a signed 32-bit integer; a longer one fires at once. */
const LONGEST_DELAY_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => ({ monotonicMs: performance.now(), wallMs: Date.now() }),
  setTimer(callback, delayMs, where) {
    let timer: NodeJS.Timeout;
    let keepsRunning = where !== 'background';
    const arm = (leftMs: number): void => {
      const stepMs = Math.min(leftMs, LONGEST_DELAY_MS);
      timer = setTimeout(() => {
        if (leftMs > stepMs) arm(leftMs - stepMs);
        else callback();
      }, stepMs);
      if (!keepsRunning) timer.unref();
    };
    arm(Math.max(0, delayMs));
    const cancel = (): void => {
      clearTimeout(timer);
    };
    cancel.keepRunning = (isNeeded: boolean): void => {
      keepsRunning = isNeeded;
      if (isNeeded) timer.ref();
      else timer.unref();
    };
    return cancel;
  },
};

/**
 * Milliseconds from one moment to another: the larger of what the two clocks say. A monotonic clock stands still while the
 * machine is suspended, a wall clock can be set back; a lease must not outlive either.
 */
export function elapsedMs(from: Instant, to: Instant): number {
  return Math.max(to.monotonicMs - from.monotonicMs, to.wallMs - from.wallMs);
}

/** Resolves as the work does, or with `undefined` after `ms`. */
export async function within<T>(
  clock: Clock,
  ms: number,
  work: Promise<T>,
): Promise<T | undefined> {
  let cancel = (): void => undefined;
  const timeIsUp = new Promise<undefined>((resolve) => {
    cancel = clock.setTimer(() => {
      resolve(undefined);
    }, ms);
  });
  try {
    return await Promise.race([work, timeIsUp]);
  } finally {
    cancel();
  }
}
