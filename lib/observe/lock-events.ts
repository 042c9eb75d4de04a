import {
  LockConfigurationError,
  type Intervention,
  type LockLossReason,
  type NodeFailure,
} from '../errors.js';
import { EVENTS } from './channels.js';
import type { LockSubject } from './contexts.js';
import type { Log } from './log.js';

/**
 * The events of a `LockService`: see `LockService.on`. Each event is also published on the channel `holdfast:<event>`
 * of Node's `diagnostics_channel`: `holdfast:lost`, `holdfast:handed-on`. Durations are in milliseconds.
 *
 * @typeParam Token `undefined` for the locks of a `LockDriver`, which have no fencing tokens
 */
export interface LockEvents<Token extends number | undefined = number> {
  /** A call begins to wait: another caller holds the lock, or the store does not reply. */
  readonly waiting: LockSubject & { readonly because: 'held' | 'unavailable' };
  /** A lock was granted. */
  readonly acquired: LockSubject & { readonly fencingToken: Token; readonly waitedMs: number };
  /** A lock was not granted, because another caller holds it. */
  readonly refused: LockSubject & { readonly retryAfterMs: number; readonly waitedMs: number };
  /** A lock was not granted, released, detached or attached, because the store did not reply. */
  readonly unavailable: LockSubject & {
    readonly operation: 'acquire' | 'release' | 'detach' | 'attach';
    readonly nodes: readonly NodeFailure[];
  };
  /** A lock was renewed. */
  readonly renewed: LockSubject & { readonly fencingToken: Token; readonly remainingMs: number };
  /** A renewal failed. The lock is still held for `remainingMs`. Then it is lost, unless a renewal succeeds before. */
  readonly jeopardy: LockSubject & {
    readonly fencingToken: Token;
    readonly remainingMs: number;
    readonly nodes: readonly NodeFailure[];
  };
  /** A lock is no longer held, although it was not released through its handle. */
  readonly lost: LockSubject & {
    readonly fencingToken: Token;
    readonly reason: LockLossReason;
    /** The operator that released it by force, and the reason, if that is why it was lost. */
    readonly intervention?: Intervention;
  };
  /** The holder released a lock. */
  readonly released: LockSubject & { readonly fencingToken: Token; readonly heldMs: number };
  /** The holder detached a lock. For `ttlMs` it can be attached. */
  readonly detached: LockSubject & {
    readonly fencingToken: Token;
    readonly heldMs: number;
    readonly ttlMs: number;
  };
  /** This service holds a lock that was detached. */
  readonly attached: LockSubject & { readonly fencingToken: Token };
  /**
   * A lock was released and granted to the next caller of this process, without the store. `template` and `method` are
   * those of the next caller.
   */
  readonly handedOn: LockSubject & {
    readonly fencingToken: Token;
    /** The token of the lock that was released. */
    readonly previousToken: number;
  };
  /**
   * Other callers hold the key with another limit than this call gives, and `setLimit` has set none. The process that
   * detects it emits the event once for each difference, and logs a warning.
   */
  readonly limitsDiffer: LockSubject & { readonly limit: number; readonly otherLimit: number };
  /** An attempt at work that is to be done once began or ended. */
  readonly once: LockSubject & OnceProgress;
}

/** The progress of an attempt. */
export type OnceProgress =
  | { readonly phase: 'began'; readonly attempt: number }
  | { readonly phase: 'ended'; readonly attempt: number; readonly outcome: OnceEnding };

/**
 * How an attempt ended. `'final'`: it threw a `NonRetryableError`. `'superseded'`: it had lost its lock, and another attempt
 * decides.
 */
export type OnceEnding = 'completed' | 'failed' | 'final' | 'superseded' | 'unavailable';

export type LockEventName = keyof LockEvents;
export type LockEventListener<
  Name extends LockEventName,
  Token extends number | undefined = number,
> = (event: LockEvents<Token>[Name]) => void;

/** An event before its service is named. */
type Unsigned<Event> = Event extends unknown ? Omit<Event, 'service'> : never;

/**
 * Publishes the events of locks to listeners and channels. A listener that throws is logged and disturbs neither locks
 * nor other listeners.
 */
export class LockEventHub {
  /** The name of the service, if it has one. */
  readonly service: string | undefined;
  readonly #log: Log;
  readonly #listeners = Object.fromEntries(
    Object.keys(EVENTS).map((name) => [name, new Set()]),
  ) as unknown as { readonly [Name in LockEventName]: Set<LockEventListener<Name>> };

  constructor(log: Log, service?: string) {
    this.#log = log;
    this.service = service;
  }

  on<Name extends LockEventName>(name: Name, listener: LockEventListener<Name>): () => void {
    if (!Object.hasOwn(this.#listeners, name)) {
      const names = Object.keys(this.#listeners).join(', ');
      throw new LockConfigurationError(`There is no event "${name}". The events are ${names}.`);
    }
    // A function of its own for each call, so that the same listener can be added twice and removed once.
    const entry: LockEventListener<Name> = (event) => {
      listener(event);
    };
    const listeners: Set<LockEventListener<Name>> = this.#listeners[name];
    listeners.add(entry);
    return () => {
      listeners.delete(entry);
    };
  }

  /** Whether there is a listener. Without one, the event is not created. */
  isHeard(name: LockEventName): boolean {
    return this.#listeners[name].size > 0 || EVENTS[name].hasSubscribers;
  }

  emit<Name extends LockEventName>(name: Name, facts: Unsigned<LockEvents[Name]>): void {
    const { service } = this;
    const event = (service === undefined ? facts : { service, ...facts }) as LockEvents[Name];
    const listeners: Set<LockEventListener<Name>> = this.#listeners[name];
    for (const listener of listeners) {
      try {
        listener(event);
      } catch (error) {
        this.#log.error(`A listener of the "${name}" event threw`, error);
      }
    }
    if (EVENTS[name].hasSubscribers) EVENTS[name].publish(event);
  }
}
