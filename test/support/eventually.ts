import { setTimeout as sleep } from 'node:timers/promises';

/** Between two looks: often at first, for what is about to be, then less often, so that what takes its time is not slowed down by it. */
const [FIRST_POLL_MS, LONGEST_POLL_MS, POLL_GROWTH] = [10, 80, 1.25];

/** Anything with a `once` method: Node's emitters, ioredis clients, child processes, Nest's emitter. */
export interface Emits {
  once(event: string, listener: (...args: unknown[]) => void): unknown;
}

/** A promise with its two ends in hand. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T | PromiseLike<T>): void;
  reject(reason: unknown): void;
}

/**
 * Repeats `check` until it neither throws nor returns `false` or `null`, and resolves with what it returned.
 * For the state of other processes only: inside this process, wait for the event itself.
 *
 * @throws the last error of `check` after `withinMs` (default 15,000)
 */
export async function eventually<T>(
  check: () => T | Promise<T>,
  { withinMs = 15_000 }: { withinMs?: number } = {},
): Promise<Exclude<T, false | null>> {
  const deadline = performance.now() + withinMs;
  for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(LONGEST_POLL_MS, pollMs * POLL_GROWTH)) {
    let lastError: unknown;
    try {
      const result = await check();
      if (result !== false && result !== null) return result as Exclude<T, false | null>;
      lastError = new Error(
        `The check still returned ${String(result)} after ${withinMs} ms: ${check.toString()}`,
      );
    } catch (error) {
      lastError = error;
    }
    if (performance.now() >= deadline) throw lastError;
    await sleep(pollMs);
  }
}

/** Resolves with the arguments of the next `event`. Unlike `events.once`, an `error` event does not reject it. */
export function until(emitter: Emits, event: string): Promise<unknown[]> {
  return new Promise((resolve) => {
    emitter.once(event, (...args) => {
      resolve(args);
    });
  });
}

/** A promise that the test itself settles. */
export function deferred<T = void>(): Deferred<T> {
  let resolve!: Deferred<T>['resolve'];
  let reject!: Deferred<T>['reject'];
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}
