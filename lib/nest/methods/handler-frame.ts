import { AsyncLocalStorage } from 'node:async_hooks';
import type { RequestValues } from '../../key/index.js';
import type { Scope } from '../../sections/scope.js';
import type { Section } from '../../sections/section.js';
import type { LockService } from '../lock.service.js';
import type { Holding } from '../../sections/holding.js';
import { keysOfCall } from './keys-of-call.js';
import type { LockFeature } from './lock-feature.js';
import type { Invocation, LockedMethod } from './locked-method.js';

/** What the runner knows about a call. */
interface HandlerCall {
  readonly request: RequestValues;
  /** The class of the handler. */
  readonly className: string;
  /** What its module imports. */
  readonly feature: LockFeature | undefined;
  /**
   * Whether unsubscribing from the handler's Observable ends it, as in a feed. Otherwise its work continues, and keeps
   * the lock.
   */
  readonly endsUnsubscribed: boolean;
  /** Whether its client gets the `message` of an error of a stream. */
  readonly streamsMessage: boolean;
  /** Watches, during a wait for the lock, for the client to go away; returns what stops watching. */
  readonly watchClient: (gone: (reason: Error) => void) => () => void;
}

const current = new AsyncLocalStorage<HandlerFrame | undefined>();

/**
 * One call of a handler, from its first interceptor to its end. The runner opens and ends it. The decorated method
 * finds it, and acquires into it when its keys need the arguments as the pipes made them.
 *
 * The method's own code does not see it: calls that this code makes, even of the method itself, take locks of their
 * own.
 */
export class HandlerFrame {
  readonly locked: LockedMethod;
  readonly service: LockService;
  readonly request: RequestValues;
  readonly endsUnsubscribed: boolean;
  readonly streamsMessage: boolean;
  readonly feature: LockFeature | undefined;
  readonly #className: string;
  readonly #watchClient: HandlerCall['watchClient'];
  /** The arguments of the call; empty until it came. */
  args: readonly unknown[] = [];
  /** The lock of the frame, asked for or held. */
  #scope: Promise<Scope> | undefined;
  #section: Section | undefined;
  /** The calls that have not ended: more than one when an interceptor calls again (`retry()`) while the call before still works. */
  readonly #calls = new Set<Promise<Scope>>();
  /** The steps of iterations that are at work: two where the consumer leaves in the middle of one. */
  readonly #steps = new Set<Promise<unknown>>();
  readonly #abandoned = new AbortController();
  #over = false;
  #left = false;

  constructor(
    locked: LockedMethod,
    service: LockService,
    { request, className, feature, endsUnsubscribed, streamsMessage, watchClient }: HandlerCall,
  ) {
    this.locked = locked;
    this.service = service;
    this.request = request;
    this.feature = feature;
    this.#className = className;
    this.endsUnsubscribed = endsUnsubscribed;
    this.streamsMessage = streamsMessage;
    this.#watchClient = watchClient;
  }

  static current(): HandlerFrame | undefined {
    return current.getStore();
  }

  /** Calls `work` where no frame is seen. */
  static outside<T>(work: () => T): T {
    return current.run(undefined, work);
  }

  /** Calls `work` with this frame, and the section that it holds, as its async context. */
  inside<T>(work: () => T): T {
    const section = this.#section;
    return current.run(this, () => (section === undefined ? work() : section.inside(work)));
  }

  /** Whether a call of that method, made where this frame is seen, belongs to it. */
  fits(locked: LockedMethod): boolean {
    return this.locked === locked && !this.#over;
  }

  /** Whether a call works, or waits for its lock. */
  get isRunning(): boolean {
    return this.#calls.size > 0;
  }

  /** Acquires the lock, unless it is held already. */
  acquire(): Promise<Scope> {
    // Keys that need only the request are asked for before the method is called.
    return this.#acquired({ self: undefined, args: [] });
  }

  #acquired(call: Invocation): Promise<Scope> {
    this.#scope ??= this.#acquire(call);
    return this.#scope;
  }

  /**
   * Opens the section of one call, nested in that of the frame. Calls take turns, and the lock is released only when
   * all have ended.
   */
  async enter(call: Invocation): Promise<Holding> {
    this.args = call.args;
    const opening = this.#open(call);
    this.#calls.add(opening);
    const over = (): void => void this.#calls.delete(opening);
    try {
      const scope = await opening;
      return {
        section: scope.section,
        finish: () => {
          over();
          return scope.finish();
        },
        fail: (error) => {
          over();
          return scope.fail(error);
        },
        step: (step) => {
          this.#track(step);
        },
      };
    } catch (error) {
      over();
      throw error;
    }
  }

  /** Gives the lock back when the calls have ended. Rejects with a `LockLostError` when it was lost. */
  async finish(): Promise<void> {
    const scope = await this.#end();
    await scope?.finish();
  }

  /** Gives the lock back after an error, and that error with it. */
  async fail(error: unknown): Promise<unknown> {
    const scope = await this.#end();
    return scope === undefined ? error : scope.fail(error);
  }

  /**
   * No caller waits for this frame any more. From `end` on, calls without a lock give up, and the lock is released when
   * the others have ended. Signal, event and log report what happens to it.
   */
  leave(end: Promise<void> = Promise.resolve()): void {
    if (this.#left) return;
    this.#left = true;
    end
      .then(() => {
        this.#abandoned.abort();
        return this.finish();
      })
      .catch(() => undefined);
  }

  async #acquire(call: Invocation): Promise<Scope> {
    const { locked, service } = this;
    const { signal } = this.#abandoned;
    let stopWatching: (() => void) | undefined;
    try {
      const keys = this.#keysOf(call);
      const { waits, run } = locked.locking.in(this.feature);
      if (waits) {
        stopWatching = this.#watchClient((reason) => {
          this.#abandoned.abort(reason);
        });
      }
      const site = { place: locked.name };
      const { origin } = locked;
      const options = service.checked(() => locked.optionsOf(call, run));
      const scope = await service.openScope(keys, options, { site, signal, origin });
      this.#section = scope.section;
      return scope;
    } catch (error) {
      this.#scope = undefined; // so that a `retry()` asks again
      throw error;
    } finally {
      stopWatching?.();
    }
  }

  async #open(call: Invocation): Promise<Scope> {
    const { locked, service } = this;
    const { section, lock } = await this.#acquired(call);
    this.#abandoned.signal.throwIfAborted();
    const keys = locked.needsArguments ? this.#keysOf(call) : lock.keys;
    const { origin, locking } = locked;
    return service.openScope(keys, locking.in(this.feature).nested, { parent: section, origin });
  }

  #keysOf(call: Invocation): readonly string[] {
    const { feature } = this;
    const whole = { ...call, feature, className: this.#className };
    return keysOfCall(this.service, this.locked, whole, this.request);
  }

  async #end(): Promise<Scope | undefined> {
    this.#over = true;
    if (this.locked.kind === 'iterable') await this.#endIterations();
    // A refusal is the answer of the call that asked.
    return this.#scope?.catch(() => undefined);
  }

  /**
   * The end of a response ends the iteration that fed it, even if no consumer asks the iterator to return. A step that
   * is at work is not ended.
   */
  async #endIterations(): Promise<void> {
    do {
      // Who does ask has done it by then.
      await new Promise<void>((resolve) => this.service.runtime.afterInput(resolve));
      await Promise.all(this.#steps);
    } while (this.#steps.size > 0);
    for (const opening of this.#calls)
      await opening.then((scope) => scope.finish()).catch(() => undefined);
  }

  #track(step: Promise<unknown>): void {
    const settled = Promise.allSettled([step]).then(() => {
      this.#steps.delete(settled);
    });
    this.#steps.add(settled);
  }
}
