import { LockConfigurationError, LockKeyError } from '../../errors.js';
import {
  canonicalKeys,
  parseKeyTemplate,
  type KeyTemplate,
  type RequestValues,
} from '../../key/index.js';
import { describe } from '../../options/describe.js';
import { toMs } from '../../options/duration.js';
import { booleanOf, ttlToMs } from '../../options/resolve-options.js';
import {
  holdModeFrom,
  minHoldToMs,
  releaseOf,
  type RunOptions,
} from '../../options/acquire-options.js';
import { hintFor, LOCK_ELSEWHERE } from '../../options/unknown-option.js';
import { getLockServiceToken } from '../tokens.js';
import { FireTime } from './fire-time.js';
import { ServiceSlot } from './service-slot.js';
import type { LockKeys, WithLockKey, WithLockOptions } from './with-lock.types.js';

type Method = (...args: unknown[]) => unknown;

/** The kinds of results that a locked method can give; a generator is seen by the kind of function. */
export type ReturnKind = 'promise' | 'observable' | 'iterable';

/** What a method was called with. */
export interface Invocation {
  /** The object of the call: `this` of a key function. */
  readonly self: unknown;
  readonly args: readonly unknown[];
}

/** What is different from one decorator to another. */
export interface LockDecorator {
  /** `@WithLock` */
  readonly called: string;
  /** The names of its options. */
  readonly options: Readonly<Record<string, true>>;
  /** How long its calls wait unless told; `undefined` as long as the service's other calls. */
  readonly wait: number | undefined;
  /** Whether its calls go through inside a section that holds their keys, unless told. */
  readonly reentrant: boolean;
}

/** What `@WithLock` or `@RunOnce` says of one method: parsed and checked once, when its class is defined. */
export class LockedMethod {
  /** The decorator, as it is called. */
  readonly decorator: string;
  /** For messages: `OrdersService.pay`. */
  readonly name: string;
  /** For messages about the decorator: `@WithLock on OrdersService.pay`. */
  readonly where: string;
  readonly propertyKey: string | symbol;
  readonly kind: ReturnKind;
  readonly onLocked: NonNullable<WithLockOptions['onLocked']>;
  readonly runOptions: RunOptions;
  readonly slot: ServiceSlot;
  /** Whether the arguments decide about the keys, which handlers have only after their pipes. */
  readonly needsArguments: boolean;
  readonly #keys: readonly KeyTemplate[] | ((this: never, ...args: never[]) => LockKeys);

  constructor(
    target: object,
    propertyKey: string | symbol,
    method: Method,
    key: WithLockKey,
    given: WithLockOptions | undefined,
    decorator: LockDecorator = WITH_LOCK,
  ) {
    const owner = target.constructor;
    this.name = `${owner.name}.${String(propertyKey)}`;
    this.propertyKey = propertyKey;
    this.decorator = decorator.called;
    this.where = `${decorator.called} on ${this.name}`;
    const { where } = this;
    refuseNoKey(where, key, decorator);
    const options = given ?? {};
    refuseNoOptions(where, options, decorator);
    refuseUnknown(where, options, decorator);
    this.kind = isAsyncGenerator(method) ? 'iterable' : (options.returns ?? 'promise');
    this.onLocked = onLockedOf(where, options.onLocked ?? 'throw');
    this.runOptions = runOptionsOf(where, options, decorator);
    this.slot = slotFor(options.instance);
    if (typeof key === 'function') {
      this.#keys = key as (this: never, ...args: never[]) => LockKeys;
      this.needsArguments = true;
      return;
    }
    const templates: readonly string[] = typeof key === 'string' ? [key] : key;
    const fireTime = new FireTime(() => [Reflect.get(target, propertyKey), method]);
    this.#keys = templates.map((template) =>
      parseKeyTemplate(template, { where, method, owner, name: propertyKey, fireTime }),
    );
    this.needsArguments = this.#keys.some(({ usesArguments }) => usesArguments);
  }

  /**
   * For when the class is defined, with all of its decorators.
   *
   * @throws LockConfigurationError
   */
  check(): void {
    if (typeof this.#keys !== 'function') for (const template of this.#keys) template.check();
  }

  /** The templates of its keys; none when a function makes them. */
  get templates(): readonly KeyTemplate[] {
    return typeof this.#keys === 'function' ? [] : this.#keys;
  }

  /** What may be wrong with its templates, and is no error. */
  get doubts(): readonly string[] {
    return this.templates.flatMap(({ source, literals }) =>
      literals
        .filter(({ isParameter }) => isParameter)
        .map(
          ({ word, text }) =>
            `${this.where}: the key ${JSON.stringify(source)} has "${text}", which is plain text, so all calls share one lock. ` +
            `For the parameter write <${word}>.`,
        ),
    );
  }

  /** Whether its calls stand in line. */
  get waits(): boolean {
    return this.runOptions.wait !== 0;
  }

  /**
   * The keys of one call.
   *
   * @param request of a handler's call: whoever sent it is to blame for bad values
   * @throws LockKeyError
   */
  resolve({ self, args }: Invocation, request: RequestValues | undefined): readonly string[] {
    if (typeof this.#keys !== 'function') {
      return canonicalKeys(this.#keys.map((template) => template.resolve(args, request)));
    }
    try {
      return canonicalKeys(this.#keys.call(self as never, ...(args as never[])));
    } catch (error) {
      if (!(error instanceof LockKeyError)) throw error;
      const problem = `${this.decorator} on ${this.name}: ${error.problem}`;
      throw new LockKeyError({ problem, fromRequest: request !== undefined });
    }
  }
}

/** Also through the Proxy of another decorator. */
const isAsyncGenerator = (method: Method): boolean =>
  Object.prototype.toString.call(method) === '[object AsyncGeneratorFunction]';

const OPTIONS = {
  ttl: true,
  wait: true,
  autoExtend: true,
  reentrant: true,
  maxHold: true,
  mode: true,
  limit: true,
  minHold: true,
  release: true,
  returns: true,
  onLocked: true,
  instance: true,
} satisfies Record<keyof WithLockOptions, true>;

const WITH_LOCK: LockDecorator = {
  called: '@WithLock',
  options: OPTIONS,
  wait: 0,
  reentrant: true,
};

/** What TypeScript checks of the arguments: JavaScript passes anything. */
function refuseNoKey(where: string, key: unknown, { called }: LockDecorator): void {
  if (typeof key === 'function' || typeof key === 'string') return;
  if (Array.isArray(key) && key.length > 0) {
    const other = (key as unknown[]).find((each) => typeof each !== 'string');
    if (other === undefined) return;
    throw new LockConfigurationError(
      `${where} has a list of keys with ${describe(other)} in it. A list holds templates; a function takes the place of the whole list.`,
    );
  }
  if (key === undefined || Array.isArray(key)) {
    throw new LockConfigurationError(
      `${where} has no key. Name what to lock: ${called}('order:<orderId>').`,
    );
  }
  throw new LockConfigurationError(
    `${where} needs its key as the first argument, received ${describe(key)}. Options come second: ` +
      `${called}('order:<orderId>', { wait: '5s' }).`,
  );
}

function refuseNoOptions(where: string, options: unknown, { called }: LockDecorator): void {
  if (typeof options === 'object' && options !== null && !Array.isArray(options)) return;
  const several =
    called === '@WithLock' ? ` Several keys are one list: ${called}(['a', 'b']).` : '';
  throw new LockConfigurationError(
    `${where} takes its options as an object, received ${describe(options)}. ` +
      `Write ${called}('order:<orderId>', { wait: '5s' }).${typeof options === 'number' ? '' : several}`,
  );
}

function refuseUnknown(where: string, options: object, { options: names }: LockDecorator): void {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(names, name));
  if (unknown === undefined) return;
  const list = Object.keys(names);
  throw new LockConfigurationError(
    `${where} has no option "${unknown}".${hintFor(unknown, list, LOCK_ELSEWHERE)} Its options are ${list.join(', ')}.`,
  );
}

function onLockedOf(where: string, value: unknown): NonNullable<WithLockOptions['onLocked']> {
  if (value === 'throw' || value === 'skip' || typeof value === 'function')
    return value as 'throw' | 'skip';
  throw new LockConfigurationError(
    `${where}: "onLocked" must be 'throw', 'skip' or a function, received ${String(value)}.`,
  );
}

/** Only what was said: the rest are the service's defaults. */
function runOptionsOf(
  where: string,
  { ttl, wait, autoExtend, reentrant, maxHold, minHold, release, mode, limit }: WithLockOptions,
  decorator: LockDecorator,
): RunOptions {
  const waits = wait ?? decorator.wait;
  try {
    const ttlMs = ttl === undefined ? undefined : ttlToMs(ttl);
    holdModeFrom({ mode, limit });
    return {
      ...(waits !== undefined && { wait: toMs(waits, 'wait') }),
      ...(ttlMs !== undefined && { ttl: ttlMs }),
      ...(autoExtend !== undefined && { autoExtend: booleanOf(autoExtend, 'autoExtend') }),
      reentrant: booleanOf(reentrant ?? decorator.reentrant, 'reentrant'),
      ...(maxHold !== undefined && { maxHold: toMs(maxHold, 'maxHold', 1) }),
      ...(mode !== undefined && { mode }),
      ...(limit !== undefined && { limit }),
      ...(minHold !== undefined && { minHold: minHoldToMs(minHold, ttlMs) }),
      ...(release !== undefined && { release: releaseOf(release) }),
    };
  } catch (error) {
    throw error instanceof LockConfigurationError
      ? new LockConfigurationError(`${where}: ${error.message}`)
      : error;
  }
}

const slots = new Map<unknown, ServiceSlot>();

function slotFor(instance: string | symbol | undefined): ServiceSlot {
  const token = getLockServiceToken(instance);
  const slot = slots.get(token) ?? new ServiceSlot(token, instance);
  slots.set(token, slot);
  return slot;
}
