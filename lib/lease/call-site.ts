import { LockError } from '../errors.js';
import type { Clock } from '../time/clock.js';

/** Where a lock was asked for: for the stacks of errors, and to say where a lock that is still held was acquired. */
export interface CallSite {
  /** `OrdersService.pay (/app/src/orders.service.ts:12:20)`, or `undefined` when that is not known. */
  readonly place: string | undefined;
}

/**
 * To record a stack takes V8 15 µs in a busy loop and 100 µs in a process that does little else: up to a tenth of a lock. So many are
 * recorded at once, and after that 20 a second.
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
   * The place that the running call was made from, if there is time to record it. Called before the call awaits anything: after that
   * nobody knows any more.
   *
   * @param ownFrames how many functions of this library stand between the application and this one
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
 * Gives a lock error the stack of the call that failed, in place of that of the timer or the answer that decided it: a call whose promise
 * nobody awaited ends the process with it, and nothing else says where that call is.
 */
export function withStackOf<E>(error: E, site: CallSite | undefined): E {
  if (!(error instanceof LockError) || !(site instanceof RecordedSite)) return error;
  const own = error.stack;
  const put = (value: unknown): void => {
    Object.defineProperty(error, 'stack', { value, writable: true, configurable: true });
  };
  // Most refusals are never shown to anybody.
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
