import { LockError, LockNotBoundError } from '../../errors.js';
import type { CallSite } from '../../lease/call-site.js';
import type { Scope } from '../../sections/scope.js';
import { Section } from '../../sections/section.js';
import { HandlerFrame } from './handler-frame.js';
import type { Invocation, LockedMethod, Refusal } from './locked-method.js';
import { forRootOf, testingForRootOf, type NamedLocks } from './service-slot.js';

/** Between the application and the recorder: this constructor, and the Proxy of `decorate`. */
const OWN_FRAMES = 2;

/** One call of a decorated method. */
export class LockedCall {
  readonly locked: LockedMethod;
  /** The frame of a handler's call. It is read here, because a stream is subscribed to, or iterated, somewhere else. */
  readonly frame: HandlerFrame | undefined;
  readonly #original: (...args: unknown[]) => unknown;
  readonly #call: Invocation;
  readonly #parent = Section.current();
  readonly #site: CallSite | undefined;

  constructor(
    locked: LockedMethod,
    original: (...args: unknown[]) => unknown,
    { self, args }: Pick<Invocation, 'self' | 'args'>,
  ) {
    this.locked = locked;
    this.#original = original;
    this.frame = HandlerFrame.of(locked);
    this.#call = { self, args, ...(this.frame?.common ?? { feature: locked.featureOf(self) }) };
    // A frame opens no lock from here.
    if (this.frame === undefined) this.#site = locked.slot.get(self)?.sites.here(OWN_FRAMES);
  }

  /** @throws LockNotBoundError */
  get service(): NamedLocks {
    const service = this.frame?.call.service ?? this.locked.slot.get(this.#call.self);
    if (service === undefined) throw notBound(this.locked, this.#call);
    return service;
  }

  /** An error of a stream, as its consumer gets it. Interceptors see only the beginning of an iteration. */
  streamed(error: unknown): unknown {
    if (this.frame?.transport.streamsMessage === true && error instanceof LockError)
      error.addressClient();
    return error;
  }

  /** Calls the method's own code. */
  apply(): unknown {
    return HandlerFrame.outside((): unknown =>
      Reflect.apply(this.#original, this.#call.self, this.#call.args),
    );
  }

  /** Runs code of the method inside the section. */
  inside<T>({ section }: Scope, work: () => T): T {
    return HandlerFrame.outside(() => section.inside(work));
  }

  /**
   * Acquires the lock of the call. Rejects with what `LockService.acquire` rejects with.
   *
   * @param signal ends the wait for the lock
   */
  async open(signal?: AbortSignal): Promise<Scope> {
    const { service, frame } = this;
    if (frame?.isOpen === true) return frame.enter(this.#call, this.#parent);
    const from = { parent: this.#parent, site: this.#site, signal };
    return this.locked.open(service, this.#call, from);
  }

  /** The same. If another caller holds the lock, `onLocked` decides the result. */
  enter(signal?: AbortSignal): Promise<Scope | Refusal> {
    return this.open(signal).catch((error: unknown) => this.locked.refused(this.#call.args, error));
  }
}

function notBound(locked: LockedMethod, { self }: Invocation): LockNotBoundError {
  const { serviceName } = locked.slot;
  if (locked.slot.hasStandIn(self))
    return new LockNotBoundError(
      `${locked.name} has ${locked.decorator.called}, and something else was provided as its LockService, so the method did not run. In a test ` +
        `import ${testingForRootOf(serviceName)} from nestjs-holdfast/testing, or provide createTestLocks().locks instead of the mock.`,
    );
  return new LockNotBoundError(
    `${locked.name} has ${locked.decorator.called}, but this object has no LockService, so the method did not run. Nest gives one to the providers and ` +
      `controllers that it makes in an application with ${forRootOf(serviceName)}; for any other object call locks.bind(object) first. ` +
      'In a test: createTestLocks().locks.bind(object).',
  );
}
