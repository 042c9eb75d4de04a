import { LockConfigurationError, LockNotAcquiredError } from '../../errors.js';
import type { ScopeOrigin } from '../../engine/granting.js';
import type { LockEngine, LockInspection, TryRunResult } from '../../engine/lock-engine.js';
import type { LockOrigin } from '../../lease/lock-request.js';
import type { DetachableLock } from '../../lease/lock.js';
import {
  constantOptions,
  NO_OPTIONS,
  optionsOver,
  type AcquireOptions,
  type RunOptions,
  type TryAcquireOptions,
  type TryRunOptions,
} from '../../options/acquire-options.js';
import { optionsAndWork, optionsOf } from '../../options/call-arguments.js';
import type { Scope } from '../../sections/scope.js';
import type { KeyArguments, LockDefinition, LockWork } from './definition.types.js';

/** What `defineLock` has made. Its module knows the decorator, which `LockService` must not know. */
export const definitions = new WeakSet();

/** A definition with the service that takes its locks: what `locks.for(orderLock)` returns. */
export class DefinedLock<Template extends string, Token extends number | undefined = number> {
  /** The template, as events, traces and metrics have it. */
  readonly name: Template;
  readonly #locks: LockEngine<Token>;
  readonly #definition: LockDefinition<Template>;
  readonly #notWaiting: RunOptions;
  readonly #origin: LockOrigin;

  /** @throws LockConfigurationError for options that do not fit those of the service, and for what `defineLock` did not make */
  constructor(definition: LockDefinition<Template>, locks: LockEngine<Token>) {
    if (!definitions.has(definition))
      throw new LockConfigurationError(
        "for() takes what defineLock() returns: const orderLock = defineLock('order:<orderId>').",
      );
    const { name, options } = definition;
    this.name = name;
    this.#definition = definition;
    this.#locks = locks;
    this.#notWaiting = constantOptions({ ...options, wait: 0 });
    this.#origin = Object.freeze({ template: name });
    locks.resolved(options);
  }

  /**
   * As `LockService.run`, with the values of the key instead of the key: `run(orderId, work)`,
   * `run({ orderId }, options, work)`.
   */
  run<T>(...args: [...key: KeyArguments<Template>, work: LockWork<T, Token>]): Promise<T>;
  run<T>(
    ...args: [...key: KeyArguments<Template>, options: RunOptions, work: LockWork<T, Token>]
  ): Promise<T>;
  async run<T>(...args: unknown[]): Promise<T> {
    const { key, rest, from } = this.#split(args);
    const [given, work] = optionsAndWork('run', rest as [RunOptions, LockWork<T, Token>]);
    const scope = await this.#locks.openScope(key, this.#with(given), from);
    return scope.run(work, this.#locks.refuseStream);
  }

  /** As `LockService.tryRun`. The `wait` of the definition does not count. */
  tryRun<T>(
    ...args: [...key: KeyArguments<Template>, work: LockWork<T, Token>]
  ): Promise<TryRunResult<T>>;
  tryRun<T>(
    ...args: [...key: KeyArguments<Template>, options: TryRunOptions, work: LockWork<T, Token>]
  ): Promise<TryRunResult<T>>;
  async tryRun<T>(...args: unknown[]): Promise<TryRunResult<T>> {
    const { key, rest, from } = this.#split(args);
    const [given, work] = optionsAndWork('tryRun', rest as [TryRunOptions, LockWork<T, Token>]);
    const options = this.#with(given, this.#notWaiting);
    let scope: Scope;
    try {
      scope = await this.#locks.openScope(key, options, { ...from, whenBusy: 'refuse' });
    } catch (error) {
      if (!(error instanceof LockNotAcquiredError)) throw error;
      return { acquired: false, retryAfterMs: error.retryAfterMs };
    }
    return { acquired: true, value: await scope.run(work, this.#locks.refuseStream) };
  }

  /** As `LockService.acquire`. */
  async acquire(
    ...args: [...key: KeyArguments<Template>, options?: AcquireOptions]
  ): Promise<DetachableLock<Token>> {
    const { key, rest, from } = this.#split(args);
    const given = optionsOf('acquire', rest[0] as AcquireOptions | undefined);
    return this.#locks.acquireFrom(key, this.#with(given), from);
  }

  /** As `LockService.tryAcquire`. The `wait` of the definition does not count. */
  async tryAcquire(
    ...args: [...key: KeyArguments<Template>, options?: TryAcquireOptions]
  ): Promise<DetachableLock<Token> | null> {
    const { key, rest, from } = this.#split(args);
    const given = optionsOf('tryAcquire', rest[0] as TryAcquireOptions | undefined);
    try {
      return await this.#locks.acquireFrom(key, this.#with(given, this.#notWaiting), from);
    } catch (error) {
      if (error instanceof LockNotAcquiredError) return null;
      throw error;
    }
  }

  /** As `LockService.inspect`. */
  async inspect(...key: KeyArguments<Template>): Promise<LockInspection> {
    return this.#locks.inspect(this.#locks.checked(() => this.#definition.key(...key)));
  }

  /** Options of a call, and those of the definition where the call says nothing. */
  #with(given: RunOptions, own: RunOptions = this.#definition.options): RunOptions {
    return given === NO_OPTIONS ? own : optionsOver(own, given);
  }

  /**
   * Takes the arguments of a call apart. Its methods call it first: the site of the call is two calls away.
   *
   * @throws LockKeyError
   */
  #split(args: readonly unknown[]) {
    const from: ScopeOrigin = { origin: this.#origin, site: this.#locks.sites.here(2) };
    // Only placeholders have brackets.
    const count = this.name.includes('<') ? 1 : 0;
    const values = args.slice(0, count) as KeyArguments<Template>;
    const key = this.#locks.checked(() => this.#definition.key(...values));
    return { key, rest: args.slice(count), from };
  }
}
