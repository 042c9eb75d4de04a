import { LockNotAcquiredError } from '../../errors.js';
import type { LockEngine, LockInspection, TryRunResult } from '../../engine/lock-engine.js';
import type { NamedTemplate } from '../../key/index.js';
import type { LockOrigin } from '../../lease/grant.js';
import type { DetachableLock } from '../../lease/lock.js';
import {
  constantOptions,
  type AcquireOptions,
  type RunOptions,
  type TryAcquireOptions,
  type TryRunOptions,
} from '../../options/acquire-options.js';
import { optionsAndWork, optionsOf } from '../../options/call-arguments.js';
import type { Scope } from '../../sections/scope.js';
import { keyFrom, templateOf } from './definition-templates.js';
import type { KeyArguments, LockDefinition, LockWork } from './definition.types.js';

/** A definition with the service that takes its locks: what `locks.use(orderLock)` returns. */
export class DefinedLock<Template extends string, Token extends number | undefined = number> {
  /** The template, as events, traces and metrics have it. */
  readonly name: Template;
  readonly #locks: LockEngine<Token>;
  readonly #template: NamedTemplate;
  readonly #options: RunOptions;
  readonly #notWaiting: RunOptions;
  readonly #origin: LockOrigin;

  /** @throws LockConfigurationError for options that do not fit those of the service */
  constructor(definition: LockDefinition<Template>, locks: LockEngine<Token>) {
    const { name, options } = definition;
    this.name = name;
    this.#template = templateOf(definition);
    this.#locks = locks;
    this.#options = options;
    this.#notWaiting = constantOptions({ ...options, wait: 0 });
    this.#origin = Object.freeze({ template: name });
    locks.assertFits(options);
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
    const { key, rest } = this.#split(args);
    const [given, work] = optionsAndWork('run', rest as [RunOptions, LockWork<T, Token>]);
    const locks = this.#locks;
    const options = rest.length === 1 ? this.#options : { ...this.#options, ...given };
    const from = { origin: this.#origin, site: locks.sites.here(1) };
    const scope = await locks.openScope(key, options, from);
    return scope.run(work, locks.refuseStream);
  }

  /** As `LockService.tryRun`. The `wait` of the definition does not count. */
  tryRun<T>(
    ...args: [...key: KeyArguments<Template>, work: LockWork<T, Token>]
  ): Promise<TryRunResult<T>>;
  tryRun<T>(
    ...args: [...key: KeyArguments<Template>, options: TryRunOptions, work: LockWork<T, Token>]
  ): Promise<TryRunResult<T>>;
  async tryRun<T>(...args: unknown[]): Promise<TryRunResult<T>> {
    const { key, rest } = this.#split(args);
    const [given, work] = optionsAndWork('tryRun', rest as [TryRunOptions, LockWork<T, Token>]);
    const locks = this.#locks;
    const options = rest.length === 1 ? this.#notWaiting : { ...this.#notWaiting, ...given };
    const site = locks.sites.here(1);
    let scope: Scope;
    try {
      const from = { origin: this.#origin, site, whenBusy: 'refuse' } as const;
      scope = await locks.openScope(key, options, from);
    } catch (error) {
      if (!(error instanceof LockNotAcquiredError)) throw error;
      return { acquired: false, retryAfterMs: error.retryAfterMs };
    }
    return { acquired: true, value: await scope.run(work, locks.refuseStream) };
  }

  /** As `LockService.acquire`. */
  async acquire(
    ...args: [...key: KeyArguments<Template>, options?: AcquireOptions]
  ): Promise<DetachableLock<Token>> {
    const { key, rest } = this.#split(args);
    const given = optionsOf('acquire', rest[0] as AcquireOptions | undefined);
    const options = rest.length === 0 ? this.#options : { ...this.#options, ...given };
    const locks = this.#locks;
    return locks.acquireFrom(key, options, { origin: this.#origin, site: locks.sites.here(1) });
  }

  /** As `LockService.tryAcquire`. The `wait` of the definition does not count. */
  async tryAcquire(
    ...args: [...key: KeyArguments<Template>, options?: TryAcquireOptions]
  ): Promise<DetachableLock<Token> | null> {
    const { key, rest } = this.#split(args);
    const given = optionsOf('tryAcquire', rest[0] as TryAcquireOptions | undefined);
    const options = rest.length === 0 ? this.#notWaiting : { ...this.#notWaiting, ...given };
    const locks = this.#locks;
    const site = locks.sites.here(1);
    try {
      return await locks.acquireFrom(key, options, { origin: this.#origin, site });
    } catch (error) {
      if (error instanceof LockNotAcquiredError) return null;
      throw error;
    }
  }

  /** As `LockService.inspect`. */
  async inspect(...key: KeyArguments<Template>): Promise<LockInspection> {
    return this.#locks.inspect(this.#split(key).key);
  }

  /** @throws LockKeyError */
  #split(args: readonly unknown[]): { readonly key: string; readonly rest: readonly unknown[] } {
    const template = this.#template;
    const count = template.names.length > 0 ? 1 : 0;
    const key = this.#locks.checked(() => keyFrom(template, count === 0 ? undefined : args[0]));
    return { key, rest: args.slice(count) };
  }
}
