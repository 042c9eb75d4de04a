import { LockError, LockNotAcquiredError, LockNotBoundError } from '../../errors.js';
import type { CallSite } from '../../lease/call-site.js';
import { lockNameOf } from '../../lease/grant.js';
import { Section } from '../../sections/section.js';
import { HandlerFrame } from './handler-frame.js';
import type { Holding } from '../../sections/holding.js';
import { keysOfCall } from './keys-of-call.js';
import { featureOf } from './lock-feature.js';
import type { Invocation, LockedMethod } from './locked-method.js';
import { forRootOf, testingForRootOf, type NamedLocks } from './service-slot.js';

export type Entry =
  | { readonly status: 'entered'; readonly holding: Holding }
  /** Another caller holds the lock, and `onLocked` decides the result. */
  | { readonly status: 'locked'; readonly skip: boolean; readonly answer: unknown };

/** Between the application and the recorder: this constructor, and the Proxy of `decorate`. */
const OWN_FRAMES = 2;

/** One call of a decorated method. */
export class LockedCall {
  readonly #locked: LockedMethod;
  readonly #original: (...args: unknown[]) => unknown;
  readonly #call: Invocation;
  /** As of the call: a stream is subscribed to, or iterated, somewhere else. */
  readonly #frame: HandlerFrame | undefined;
  readonly #section = Section.current();
  readonly #site: CallSite | undefined;

  constructor(locked: LockedMethod, original: (...args: unknown[]) => unknown, call: Invocation) {
    this.#locked = locked;
    this.#original = original;
    this.#call = call;
    const frame = HandlerFrame.current();
    this.#frame = frame?.locked === locked ? frame : undefined;
    // A frame opens no lock from here.
    if (this.#frame === undefined) this.#site = locked.slot.get(call.self)?.sites.here(OWN_FRAMES);
  }

  get name(): string {
    return this.#locked.name;
  }

  /** What messages call its lock. */
  get lockName(): string | undefined {
    return lockNameOf(this.#locked.origin);
  }

  /** As it is called. */
  get decorator(): string {
    return this.#locked.decorator;
  }

  /** @throws LockNotBoundError */
  get service(): NamedLocks {
    const service = this.#frame?.service ?? this.#locked.slot.get(this.#call.self);
    if (service === undefined) throw notBound(this.#locked, this.#call);
    return service;
  }

  /** Whether it is a handler's call, whose answer goes out as a response. */
  get isHandlers(): boolean {
    return this.#frame !== undefined;
  }

  /**
   * Whether the call's work continues when its Observable is unsubscribed from. That of a handler does, unless it is a
   * feed.
   */
  get outlivesSubscriber(): boolean {
    return this.#frame?.endsUnsubscribed === false;
  }

  /** An error of a stream, as its consumer gets it. Interceptors see only the beginning of an iteration. */
  streamed(error: unknown): unknown {
    if (this.#frame?.streamsMessage === true && error instanceof LockError) error.addressClient();
    return error;
  }

  /** Runs the method's own code inside the section. */
  invoke(holding: Holding): unknown {
    return this.inside(holding, (): unknown =>
      Reflect.apply(this.#original, this.#call.self, this.#call.args),
    );
  }

  /** Runs code of the method inside the section. */
  inside<T>({ section }: Holding, work: () => T): T {
    return HandlerFrame.outside(() => section.inside(work));
  }

  /**
   * Acquires the lock of the call. Rejects with what `LockService.acquire` rejects with.
   *
   * @param signal ends the wait for the lock
   */
  async enter(signal?: AbortSignal): Promise<Entry> {
    const { service } = this;
    try {
      const holding =
        this.#frame?.fits(this.#locked) === true
          ? await this.#frame.enter(this.#call)
          : await this.#ownScope(service, signal);
      return { status: 'entered', holding };
    } catch (error) {
      return onLocked(this.#locked, this.#call.args, error);
    }
  }

  #ownScope(service: NamedLocks, signal: AbortSignal | undefined): Promise<Holding> {
    const feature = this.#frame === undefined ? featureOf(this.#call.self) : this.#frame.feature;
    const call = feature === undefined ? this.#call : { ...this.#call, feature };
    const keys = keysOfCall(service, this.#locked, call, this.#frame?.request);
    const { origin, locking } = this.#locked;
    const from = { parent: this.#section, site: this.#site, signal, origin };
    const options = service.checked(() => this.#locked.optionsOf(call, locking.in(feature).run));
    return service.openScope(keys, options, from);
  }
}

/** The result of a call that was refused its lock. Any other error is thrown again. */
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

function notBound(locked: LockedMethod, { self }: Invocation): LockNotBoundError {
  const { serviceName } = locked.slot;
  if (locked.slot.hasStandIn(self))
    return new LockNotBoundError(
      `${locked.name} has ${locked.decorator}, and something else was provided as its LockService, so the method did not run. In a test ` +
        `import ${testingForRootOf(serviceName)} from nestjs-holdfast/testing, or provide createTestLocks().locks instead of the mock.`,
    );
  return new LockNotBoundError(
    `${locked.name} has ${locked.decorator}, but this object has no LockService, so the method did not run. Nest gives one to the providers and ` +
      `controllers that it makes in an application with ${forRootOf(serviceName)}; for any other object call locks.bind(object) first. ` +
      'In a test: createTestLocks().locks.bind(object).',
  );
}
