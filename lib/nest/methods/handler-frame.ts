import { AsyncLocalStorage } from 'node:async_hooks';
import type { ExecutionContext, NestInterceptor } from '@nestjs/common';
import { EMPTY, of, type Observable } from 'rxjs';
import { onAbort } from '../../queue/on-abort.js';
import { Scope } from '../../sections/scope.js';
import { Section } from '../../sections/section.js';
import { destroySource } from '../transports/http.js';
import { transportOf } from '../transports/transport-of.js';
import type { OpenResponse, Transport } from '../transports/transport.js';
import type { LockFeature } from './lock-feature.js';
import type { Invocation, LockedMethod } from './locked-method.js';
import type { NamedLocks } from './service-slot.js';

/** A call of a handler. */
export interface HandlerCall {
  /** Which opens the frame. */
  readonly interceptor: NestInterceptor;
  readonly locked: LockedMethod;
  readonly service: NamedLocks;
  readonly context: ExecutionContext;
  /** What the module of the handler's class imports. */
  readonly feature: LockFeature | undefined;
}

/** In which request the calling code is. */
interface Place {
  /** Missing in the method's own code, and what it calls. */
  readonly frame: HandlerFrame | undefined;
  /** What the request itself runs in. */
  readonly around: Section | undefined;
}

const current = new AsyncLocalStorage<Place>();

/** The latest frame of each request. */
const latest = new WeakMap<ExecutionContext, HandlerFrame>();

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
  /** The lock of the frame, asked for or held. */
  #scope: Promise<Scope> | undefined;
  #section: Section | undefined;
  /** What the request itself runs in. If another request starts it, its section is none of this one. */
  readonly #around: Section | undefined;
  /**
   * How many calls work, or wait for the lock: more than one when an interceptor calls again (`retry()`) while the call
   * before still works.
   */
  #running = 0;
  /** What ends the iterations that have begun. */
  readonly #iterations: (() => Promise<unknown>)[] = [];
  readonly #abandoned = new AbortController();
  #over = false;
  #left = false;

  constructor(call: HandlerCall) {
    this.call = call;
    const { context, feature } = call;
    this.transport = transportOf(context);
    const request = this.transport.requestValues(context);
    this.common = { className: context.getClass().name, feature, request };
    const other = current.getStore();
    this.#around = other === undefined ? Section.current() : other.around;
    latest.set(context, this);
  }

  /** The frame of a call of that method, if it is a handler's. */
  static of(locked: LockedMethod): HandlerFrame | undefined {
    const frame = current.getStore()?.frame;
    return frame?.call.locked === locked ? frame : undefined;
  }

  /** The frame of a request: the one that the calling code is in, else the latest. */
  static ofRequest(context: ExecutionContext): HandlerFrame | undefined {
    const frame = current.getStore()?.frame;
    return frame?.isOpen === true && frame.call.context === context ? frame : latest.get(context);
  }

  /** Calls `work`, of a method, where its frame is not seen. */
  static outside<T>(work: () => T): T {
    const place = current.getStore();
    return place === undefined ? work() : current.run({ ...place, frame: undefined }, work);
  }

  /** Calls `work` in this frame. On the way here, the async context may be lost, or become that of another request. */
  restore<T>(work: () => T): T {
    return current.getStore()?.frame === this ? work() : this.inside(work);
  }

  /** Calls `work` with this frame, and the section that it holds, as its async context. */
  inside<T>(work: () => T): T {
    const section = this.#section ?? this.#around;
    return current.run({ frame: this, around: this.#around }, () =>
      section === undefined ? Section.outside(work) : section.inside(work),
    );
  }

  /** The response of a call that is skipped. */
  get nothing(): Observable<undefined> {
    const { context, locked } = this.call;
    const isEmpty = locked.kind === 'observable' && this.transport.sendsEach(context);
    return isEmpty ? EMPTY : of(undefined);
  }

  /** Whether calls belong to it. */
  get isOpen(): boolean {
    return !this.#over;
  }

  /** Whether that interceptor is behind the one of this frame. Otherwise it is that one, called for another try. */
  isBefore(interceptor: NestInterceptor): boolean {
    const isAnother = this.call.interceptor !== interceptor;
    return this.isOpen && (isAnother || current.getStore()?.frame === this);
  }

  /** Acquires the lock, unless it is held already. */
  acquire(invocation: Invocation = { self: undefined, args: [], ...this.common }): Promise<Scope> {
    this.#scope ??= this.#acquire(invocation);
    return this.#scope;
  }

  /**
   * Opens the section of one call, nested in that of the frame. Calls take turns, and the lock is released only when
   * all have ended.
   *
   * @param here in which the call was made. An interceptor may have opened it, inside that of the frame.
   */
  async enter(invocation: Invocation, here: Section | undefined): Promise<Scope> {
    this.#running += 1;
    let scope: Scope;
    try {
      scope = await this.#open(invocation, here);
    } catch (error) {
      this.#running -= 1;
      throw error;
    }
    return new Scope(scope.section, () => {
      this.#running -= 1;
      return scope.finish();
    });
  }

  /** The end of the response ends an iteration that feeds it, even if no consumer asks the iterator to return. */
  endsWith(end: () => Promise<unknown>): void {
    if (this.isOpen) this.#iterations.push(end);
  }

  /**
   * Gives the lock back after the handler's answer: before the response, unless that is a stream, or a call still works.
   * Rejects with a `LockLostError` when it was lost.
   */
  async complete(value: unknown): Promise<void> {
    const { context, locked } = this.call;
    const answer = { value, propertyKey: locked.propertyKey };
    const response = this.transport.openResponse(context, answer);
    // Work that is recorded as done is done, whatever happens to its lock.
    const isDone = locked.decorator.isOnce === true;
    const isLost = !isDone && this.#section?.lock.signal.aborted === true;
    if (this.#running > 0 || (response !== undefined && !isLost)) {
      this.leave(response);
      return;
    }
    if (isLost) destroySource(value);
    const scope = await this.#end();
    await scope?.finish().catch((error: unknown) => {
      if (!isDone) throw error;
    });
  }

  /**
   * Gives the lock back after an error, and that error with it. Work that continues after its stream has ended (a
   * timeout, for instance) keeps the lock, and this response does not wait for it.
   */
  async fail(error: unknown): Promise<unknown> {
    if (this.#running === 0) return (await this.#end())?.fail(error) ?? error;
    this.leave();
    return error;
  }

  /**
   * No caller waits for this frame any more. When the response is over, calls without a lock give up, and the lock is
   * released when the others have ended. Signal, event and log report what happens to it. Until then, the loss of the
   * lock ends the response.
   */
  leave(response?: OpenResponse): void {
    if (this.#left) return;
    this.#left = true;
    const signal = this.#section?.lock.signal;
    const ignore = signal && response && onAbort(signal, response.cut);
    Promise.resolve(response?.over)
      .then(async () => {
        ignore?.();
        this.#abandoned.abort();
        await (await this.#end())?.finish();
      })
      .catch(() => undefined);
  }

  async #acquire(invocation: Invocation): Promise<Scope> {
    const { locked, service, context, feature } = this.call;
    const { signal } = this.#abandoned;
    let stopWatching: (() => void) | undefined;
    try {
      // The client may go away during a wait.
      const { waitMs, replaceWaitMs } = service.resolved(locked.lockingIn(feature).run);
      if (waitMs > 0 || replaceWaitMs !== undefined)
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

  async #open(invocation: Invocation, here: Section | undefined): Promise<Scope> {
    const { locked, service, feature } = this.call;
    // The first call has the arguments of the lock. A call that is tried again may have others.
    const isFirst = this.#scope === undefined;
    const { section, lock } = await this.acquire(invocation);
    const parent = here?.enclosing().includes(section) === true ? here : section;
    this.#abandoned.signal.throwIfAborted();
    const keys = isFirst || !locked.needsArguments ? lock.keys : locked.keysOf(service, invocation);
    const { nested } = locked.lockingIn(feature);
    return service.openScope(keys, nested, { parent, origin: locked.origin });
  }

  async #end(): Promise<Scope | undefined> {
    this.#over = true;
    await Promise.allSettled(this.#iterations.map((end) => end()));
    // A refusal is the answer of the call that asked.
    return this.#scope?.catch(() => undefined);
  }
}
