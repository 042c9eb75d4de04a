import { AsyncLocalStorage } from 'node:async_hooks';
import type { ExecutionContext } from '@nestjs/common';
import { Scope } from '../../sections/scope.js';
import type { Section } from '../../sections/section.js';
import { transportOf } from '../transports/transport-of.js';
import type { Transport } from '../transports/transport.js';
import type { LockFeature } from './lock-feature.js';
import type { Invocation, LockedMethod } from './locked-method.js';
import type { NamedLocks } from './service-slot.js';

/** A call of a handler. */
export interface HandlerCall {
  readonly locked: LockedMethod;
  readonly service: NamedLocks;
  readonly context: ExecutionContext;
  /** What the module of the handler's class imports. */
  readonly feature: LockFeature | undefined;
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
  readonly call: HandlerCall;
  /** What its calls have in common. */
  readonly common: Pick<Invocation, 'className' | 'feature' | 'request'>;
  readonly transport: Transport;
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

  constructor(call: HandlerCall) {
    this.call = call;
    const { context, feature } = call;
    this.transport = transportOf(context);
    const request = this.transport.requestValues(context);
    this.common = { className: context.getClass().name, feature, request };
  }

  /** The frame of a call of that method, if it is a handler's. */
  static of(locked: LockedMethod): HandlerFrame | undefined {
    const frame = current.getStore();
    return frame?.call.locked === locked ? frame : undefined;
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

  /** Whether calls belong to it. */
  get isOpen(): boolean {
    return !this.#over;
  }

  /** Whether a call works, or waits for its lock. */
  get isRunning(): boolean {
    return this.#calls.size > 0;
  }

  /** Acquires the lock, unless it is held already. */
  acquire(invocation: Invocation = { self: undefined, args: [], ...this.common }): Promise<Scope> {
    this.#scope ??= this.#acquire(invocation);
    return this.#scope;
  }

  /**
   * Opens the section of one call, nested in that of the frame. Calls take turns, and the lock is released only when
   * all have ended.
   */
  async enter(invocation: Invocation): Promise<Scope> {
    this.args = invocation.args;
    const opening = this.#open(invocation);
    this.#calls.add(opening);
    const over = (): void => void this.#calls.delete(opening);
    opening.catch(over);
    const scope = await opening;
    return new Scope(scope.section, () => {
      over();
      return scope.finish();
    });
  }

  /** Receives each step of an iteration: the frame does not end while one is at work. */
  track(step: Promise<unknown>): void {
    const settled = Promise.allSettled([step]).then(() => {
      this.#steps.delete(settled);
    });
    this.#steps.add(settled);
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

  async #acquire(invocation: Invocation): Promise<Scope> {
    const { locked, service, context, feature } = this.call;
    const { signal } = this.#abandoned;
    let stopWatching: (() => void) | undefined;
    try {
      // The client may go away during a wait.
      if (locked.lockingIn(feature).run.wait !== 0)
        stopWatching = this.transport.watchClient(context, (reason) => {
          this.#abandoned.abort(reason);
        });
      const from = { site: { place: locked.name }, signal };
      const scope = await locked.open(service, invocation, from);
      this.#section = scope.section;
      return scope;
    } catch (error) {
      this.#scope = undefined; // so that a `retry()` asks again
      throw error;
    } finally {
      stopWatching?.();
    }
  }

  async #open(invocation: Invocation): Promise<Scope> {
    const { locked, service, feature } = this.call;
    const { section: parent, lock } = await this.acquire(invocation);
    this.#abandoned.signal.throwIfAborted();
    const keys = locked.needsArguments ? locked.keysOf(service, invocation) : lock.keys;
    const { nested } = locked.lockingIn(feature);
    return service.openScope(keys, nested, { parent, origin: locked.origin });
  }

  async #end(): Promise<Scope | undefined> {
    this.#over = true;
    if (this.call.locked.kind === 'iterable') await this.#endIterations();
    // A refusal is the answer of the call that asked.
    return this.#scope?.catch(() => undefined);
  }

  /**
   * The end of a response ends the iteration that fed it, even if no consumer asks the iterator to return. A step that
   * is at work is not ended.
   */
  async #endIterations(): Promise<void> {
    do {
      // Code that does ask has done it by then.
      await new Promise<void>((resolve) => this.call.service.runtime.afterInput(resolve));
      await Promise.all(this.#steps);
    } while (this.#steps.size > 0);
    for (const opening of this.#calls)
      await opening.then((scope) => scope.finish()).catch(() => undefined);
  }
}
