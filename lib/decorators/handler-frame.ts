import { AsyncLocalStorage } from 'node:async_hooks';
import type { RequestValues } from '../key/index.js';
import type { Scope } from '../lease/scope.js';
import type { Section } from '../lease/section.js';
import type { LockService } from '../lock.service.js';
import type { LockedMethod } from './locked-method.js';

const current = new AsyncLocalStorage<HandlerFrame>();

/**
 * One call of a handler: opened by the interceptor, which ends it, and met by the decorated method, which acquires into it when its
 * keys need the arguments as the pipes made them. It fits one call of that one method; any other call locks for itself.
 */
export class HandlerFrame {
  readonly locked: LockedMethod;
  readonly service: LockService;
  readonly request: RequestValues;
  /** The arguments of the call; empty until it came. */
  args: readonly unknown[] = [];
  #call: 'awaited' | 'running' | 'over' = 'awaited';
  #scope: Scope | undefined;
  #whenOver: (() => void)[] = [];

  constructor(locked: LockedMethod, service: LockService, request: RequestValues) {
    this.locked = locked;
    this.service = service;
    this.request = request;
  }

  static current(): HandlerFrame | undefined {
    return current.getStore();
  }

  /** Calls `work` with this frame, and the section that it holds, as its async context. */
  inside<T>(work: () => T): T {
    const section = this.section;
    return current.run(this, () => (section === undefined ? work() : section.inside(work)));
  }

  get section(): Section | undefined {
    return this.#scope?.section;
  }

  get isRunning(): boolean {
    return this.#call === 'running';
  }

  /** Whether this frame waits for a call of that method. */
  awaits(locked: LockedMethod): boolean {
    return this.locked === locked && this.#call === 'awaited';
  }

  begin(args: readonly unknown[]): void {
    this.#call = 'running';
    this.args = args;
  }

  /** Acquires the lock of the call, unless it is held already. */
  async acquire(): Promise<Scope> {
    const { locked, service, args, request } = this;
    this.#scope ??= await service.openScope(
      service.keysOf(locked, args, request),
      locked.runOptions,
    );
    return this.#scope;
  }

  /** The call has settled. The lock stays until the interceptor ends the frame. */
  callOver(): void {
    this.#call = 'over';
    for (const resolve of this.#whenOver.splice(0)) resolve();
  }

  /** Resolves when no call runs under this frame. */
  async settled(): Promise<void> {
    if (this.#call === 'running')
      await new Promise<void>((resolve) => this.#whenOver.push(resolve));
  }

  /** Gives the lock back; rejects with a `LockLostError` when it was lost. */
  async finish(): Promise<void> {
    this.#call = 'over';
    await this.#scope?.finish();
  }

  /** Gives the lock back after an error, and that error with it. */
  async fail(error: unknown): Promise<unknown> {
    this.#call = 'over';
    return this.#scope === undefined ? error : this.#scope.fail(error);
  }
}
