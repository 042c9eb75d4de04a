import { LockNotAcquiredError, LockNotBoundError } from '../errors.js';
import { Section } from '../lease/section.js';
import type { LockService } from '../lock.service.js';
import { HandlerFrame } from './handler-frame.js';
import type { LockedMethod } from './locked-method.js';

/** The lock of a call: its own, or the frame's that it stands in. */
export interface Holding {
  readonly section: Section;
  /** Rejects with a `LockLostError` when the lock was lost. */
  finish(): Promise<void>;
  /** Gives the error back that the call is to throw. */
  fail(error: unknown): Promise<unknown>;
}

export type Entry =
  | { readonly status: 'entered'; readonly holding: Holding }
  /** Somebody else holds the lock, and `onLocked` says what to answer. */
  | { readonly status: 'locked'; readonly skip: boolean; readonly answer: unknown };

/** One call of a decorated method. */
export class LockedCall {
  readonly #locked: LockedMethod;
  readonly #original: (...args: unknown[]) => unknown;
  readonly #self: unknown;
  readonly #args: readonly unknown[];
  /** As of the call: a stream is subscribed to, or iterated, somewhere else. */
  readonly #frame = HandlerFrame.current();
  readonly #section = Section.current();

  constructor(
    locked: LockedMethod,
    original: (...args: unknown[]) => unknown,
    self: unknown,
    args: readonly unknown[],
  ) {
    this.#locked = locked;
    this.#original = original;
    this.#self = self;
    this.#args = args;
  }

  get name(): string {
    return this.#locked.name;
  }

  /** Whether it is a handler's call, whose answer goes out as a response. */
  get isHandlers(): boolean {
    return this.#frame?.locked === this.#locked;
  }

  /** Runs the method's own code inside the section. */
  invoke(holding: Holding): unknown {
    return holding.section.inside((): unknown =>
      Reflect.apply(this.#original, this.#self, this.#args),
    );
  }

  /** Acquires the lock of the call. Rejects with what `LockService.acquire` rejects with. */
  async enter(): Promise<Entry> {
    const frame = this.#frame?.awaits(this.#locked) === true ? this.#frame : undefined;
    const service = frame?.service ?? this.#locked.slot.get(this.#self);
    if (service === undefined) throw notBound(this.#locked);
    frame?.begin(this.#args);
    try {
      const holding = frame === undefined ? await this.#ownScope(service) : await inFrame(frame);
      return { status: 'entered', holding };
    } catch (error) {
      frame?.callOver();
      return onLocked(this.#locked, this.#args, error);
    }
  }

  #ownScope(service: LockService): Promise<Holding> {
    const keys = service.keysOf(this.#locked, this.#args, undefined);
    // A frame's section encloses what the frame's interceptors call again, such as an inner retry().
    const parent = this.#section ?? this.#frame?.section;
    return service.openScope(keys, this.#locked.runOptions, parent);
  }
}

async function inFrame(frame: HandlerFrame): Promise<Holding> {
  const { section } = await frame.acquire();
  return {
    section,
    finish: () => {
      frame.callOver();
      return Promise.resolve();
    },
    fail: (error) => {
      frame.callOver();
      return Promise.resolve(error);
    },
  };
}

/** What a call answers that was refused its lock; any other error is thrown on. */
export async function onLocked(
  locked: LockedMethod,
  args: readonly unknown[],
  error: unknown,
): Promise<Entry> {
  if (!(error instanceof LockNotAcquiredError) || locked.onLocked === 'throw') throw error;
  if (locked.onLocked === 'skip') return { status: 'locked', skip: true, answer: undefined };
  const { keys, retryAfterMs } = error;
  const answer: unknown = await locked.onLocked({ keys, args, retryAfterMs, error });
  return { status: 'locked', skip: false, answer };
}

function notBound(locked: LockedMethod): LockNotBoundError {
  const { serviceName } = locked.slot;
  const which = serviceName === undefined ? '' : `.forRoot({ name: '${String(serviceName)}', … })`;
  return new LockNotBoundError(
    `${locked.name} has @WithLock, but this object has no LockService, so the method did not run. Nest gives one to the providers and ` +
      `controllers that it makes in an application with RedisLockModule${which}; for any other object call locks.bind(object) first.`,
  );
}
