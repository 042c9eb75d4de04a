import { LockError } from '../errors.js';
import type { Clock } from '../time/clock.js';

/**
 * Where a lock was asked for. It is used for the stacks of errors, and to name the place of a lock that is still held.
 */
export interface CallSite {
  /** `OrdersService.pay (/app/src/orders.service.ts:12:20)`, or `undefined` when that is not known. */
  readonly place: string | undefined;
}

/**
 * Recording a stack takes V8 15 µs in a busy loop, and 100 µs in a process that does little else: up to a tenth of a
 * lock. At most this many are recorded at once, and after that 20 a second.
 */
const RECORDED_AT_ONCE = 50;
const RECORDED_PER_MS = 0.02;

/** Records where locks are asked for, as often as there is time for it. */
export class CallSites {
  readonly #clock: Clock;
  #budget = RECORDED_AT_ONCE;
  #countedAtMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#countedAtMs = clock.now().monotonicMs;
  }

  /**
   * The place that the running call was made from, if there is time to record it. Call it before the call awaits
   * anything: after that the stack no longer shows the place.
   *
   * @param ownFrames how many functions of this library are between the application and this one
   */
  here(ownFrames: number): CallSite | undefined {
    const now = this.#clock.now().monotonicMs;
    const earned = (now - this.#countedAtMs) * RECORDED_PER_MS;
    this.#budget = Math.min(RECORDED_AT_ONCE, this.#budget + earned);
    this.#countedAtMs = now;
    if (this.#budget < 1) return undefined;
    this.#budget -= 1;
    return new RecordedSite(ownFrames);
  }
}

/** V8 makes the text of a stack when it is first read. */
class RecordedSite implements CallSite {
  readonly #ownFrames: number;
  /** Set by `captureStackTrace`. */
  declare readonly stack: string;
  #frames: readonly string[] | undefined;

  constructor(ownFrames: number) {
    this.#ownFrames = ownFrames;
    // eslint-disable-next-line @typescript-eslint/unbound-method -- it is not called: frames above it are left out
    Error.captureStackTrace(this, CallSites.prototype.here);
  }

  get frames(): readonly string[] {
    this.#frames ??= this.stack.split('\n').filter((line) => line.startsWith('    at '));
    return this.#frames;
  }

  get place(): string | undefined {
    return this.frames[this.#ownFrames]?.slice('    at '.length);
  }
}

/**
 * Replaces the stack of a lock error, which is that of a timer or a reply, by that of the call that failed. An
 * unhandled rejection ends the process with this error, and nothing else names the place of the call.
 */
export function withStackOf<E>(error: E, site: CallSite | undefined): E {
  if (!(error instanceof LockError) || !(site instanceof RecordedSite)) return error;
  const own = error.stack;
  const put = (value: unknown): void => {
    Object.defineProperty(error, 'stack', { value, writable: true, configurable: true });
  };
  // Most refusals are never printed.
  Object.defineProperty(error, 'stack', {
    get: () => {
      const { frames } = site;
      return frames.length > 0 ? [`${error.name}: ${error.message}`, ...frames].join('\n') : own;
    },
    set: put,
    configurable: true,
  });
  return error;
}
