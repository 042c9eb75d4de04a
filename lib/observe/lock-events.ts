import { LockConfigurationError, type LockLossReason } from '../errors.js';
import type { Log } from './log.js';

/** What a `LockService` reports; see `LockService.on`. Keys are without `keyPrefix`. */
export interface LockEvents {
  /** A lock was granted. */
  readonly acquired: {
    readonly keys: readonly string[];
    readonly fencingToken: number;
    readonly waitedMs: number;
  };
  /** A lock was not granted, because somebody else holds it. */
  readonly refused: {
    readonly keys: readonly string[];
    readonly retryAfterMs: number;
    readonly waitedMs: number;
  };
  /** A lock that was held is held no longer, and nobody released it through its handle. */
  readonly lost: {
    readonly keys: readonly string[];
    readonly fencingToken: number;
    readonly reason: LockLossReason;
  };
  /** A lock was released by its holder. */
  readonly released: {
    readonly keys: readonly string[];
    readonly fencingToken: number;
    readonly heldMs: number;
  };
}

export type LockEventName = keyof LockEvents;
export type LockEventListener<Name extends LockEventName> = (event: LockEvents[Name]) => void;

/** Tells listeners what happens to locks. A listener that throws is logged and disturbs neither locks nor other listeners. */
export class LockEventHub {
  readonly #log: Log;
  readonly #listeners: { readonly [Name in LockEventName]: Set<LockEventListener<Name>> } = {
    acquired: new Set(),
    refused: new Set(),
    lost: new Set(),
    released: new Set(),
  };

  constructor(log: Log) {
    this.#log = log;
  }

  on<Name extends LockEventName>(name: Name, listener: LockEventListener<Name>): () => void {
    if (!Object.hasOwn(this.#listeners, name)) {
      const names = Object.keys(this.#listeners).join(', ');
      throw new LockConfigurationError(`There is no event "${name}". The events are ${names}.`);
    }
    // A function of its own for each call, so that the same listener can be added twice and taken away once.
    const entry: LockEventListener<Name> = (event) => {
      listener(event);
    };
    const listeners: Set<LockEventListener<Name>> = this.#listeners[name];
    listeners.add(entry);
    return () => {
      listeners.delete(entry);
    };
  }

  /** Whether anybody listens. Where it takes a look at the clock to make an event, one that nobody hears is not made. */
  isHeard(name: LockEventName): boolean {
    return this.#listeners[name].size > 0;
  }

  emit<Name extends LockEventName>(name: Name, event: LockEvents[Name]): void {
    const listeners: Set<LockEventListener<Name>> = this.#listeners[name];
    for (const listener of listeners) {
      try {
        listener(event);
      } catch (error) {
        this.#log.error(`A listener of the "${name}" event threw`, error);
      }
    }
  }
}
