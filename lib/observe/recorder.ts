import {
  LockConfigurationError,
  LockDeadlockError,
  LockNotAcquiredError,
  LockServiceClosedError,
  LockStoreUnavailableError,
  type LockLossReason,
  type LockLostError,
} from '../errors.js';
import { warnOfFormerName } from '../errors/former-names.js';
import { elapsedMs, type Clock } from '../time/clock.js';
import {
  ACQUIRE,
  channelNameOf,
  EVENTS,
  FORMER_CHANNELS,
  FORMER_EVENTS,
  HOLD,
  RELEASE,
  RENEW,
} from './channels.js';
import type {
  AcquireContext,
  HoldContext,
  LockSubject,
  ReleaseContext,
  RenewContext,
  RenewedLease,
} from './contexts.js';
import type {
  CurrentEventName,
  LockEventListener,
  LockEventName,
  LockEvents,
} from './lock-events.js';
import type { Log } from './log.js';
import { began, ended, traced } from './traced.js';

/** What an event tells besides its subject. */
type Facts<Event> = Event extends unknown ? Omit<Event, keyof LockSubject | 'fencingToken'> : never;

/** Whom an event is about. */
type SubjectOf<Event> = Event extends { readonly fencingToken: unknown }
  ? RecordedLock['subject']
  : LockSubject;

/** A call for a lock. */
interface RecordedCall {
  readonly subject: LockSubject;
  readonly signal: AbortSignal | undefined;
  /** What is published of it while there are subscribers. */
  observed: AcquireContext | undefined;
}

/** A lock that is held, or was. */
interface RecordedLock {
  readonly subject: LockSubject & { readonly fencingToken: number };
  readonly isOver: boolean;
  readonly loss: (reason: LockLossReason) => LockLostError;
  /** What is published of it while there are subscribers. */
  hold: HoldContext | undefined;
  /** What is published of the turn before. */
  follows: HoldContext | undefined;
}

/** How a hold ended. */
export interface HoldEnd {
  readonly outcome: 'released' | 'detached' | 'lost';
  readonly heldMs: number;
  readonly reason?: LockLossReason;
}

/**
 * Publishes the life of locks: events to listeners and channels, traces to channels. Where there are no subscribers, it does
 * nothing. A listener that throws or rejects is logged and disturbs neither locks nor other listeners.
 */
export class Recorder {
  readonly #log: Log;
  readonly #clock: Clock;
  /** Names the service in events, if it has a name. */
  readonly #signature: { readonly service?: string };
  readonly #listeners = Object.fromEntries(
    Object.keys(EVENTS).map((name) => [name, new Set()]),
  ) as unknown as { readonly [Name in CurrentEventName]: Set<LockEventListener<Name>> };

  constructor(log: Log, clock: Clock, service?: string) {
    this.#log = log;
    this.#clock = clock;
    this.#signature = service === undefined ? {} : { service };
  }

  on<Name extends LockEventName>(given: Name, listener: LockEventListener<Name>): () => void {
    const name = currentNameOf(given);
    if (!Object.hasOwn(this.#listeners, name)) {
      const names = Object.keys(this.#listeners).join(', ');
      throw new LockConfigurationError(`There is no event "${name}". The events are ${names}.`);
    }
    // A function of its own for each call, so that the same listener can be added twice and removed once.
    const entry: LockEventListener<Name> = (event) => listener(event);
    const listeners = this.#listeners[name] as Set<LockEventListener<Name>>;
    listeners.add(entry);
    return () => {
      listeners.delete(entry);
    };
  }

  /** Whether there is a listener. Without one, no event is created. Ask where the facts cost something. */
  isHeard(name: CurrentEventName): boolean {
    return (
      this.#listeners[name].size > 0 ||
      EVENTS[name].hasSubscribers ||
      FORMER_CHANNELS[name]?.hasSubscribers === true
    );
  }

  emit<Name extends CurrentEventName>(
    name: Name,
    of: { readonly subject: SubjectOf<LockEvents[Name]> },
    facts: Facts<LockEvents[Name]>,
  ): void {
    if (!this.isHeard(name)) return;
    const all: object = { ...this.#signature, ...of.subject, ...facts };
    const event = all as LockEvents[Name];
    // An async listener returns a promise, whatever its type says.
    const listeners: Set<(event: LockEvents[Name]) => unknown> = this.#listeners[name];
    for (const listener of listeners) {
      try {
        const returned = listener(event);
        if (returned instanceof Promise) returned.catch(this.#failed(name));
      } catch (error) {
        this.#failed(name)(error);
      }
    }
    if (EVENTS[name].hasSubscribers) EVENTS[name].publish(event);
    const former = FORMER_CHANNELS[name];
    if (former?.hasSubscribers !== true) return;
    warnOfFormerName(`The channel ${String(former.name)}`, channelNameOf(name));
    former.publish(event);
  }

  #failed(name: CurrentEventName): (error: unknown) => void {
    return (error) => {
      this.#log.error(`A listener of the "${name}" event threw`, error);
    };
  }

  /** Whether there are subscribers to calls for locks, or to how long they are held. */
  get isTracing(): boolean {
    return ACQUIRE.hasSubscribers || HOLD.hasSubscribers;
  }

  /** Publishes a call for a lock, from its beginning to its end. */
  call<T>(call: RecordedCall, ask: () => Promise<T>): Promise<T> {
    if (!ACQUIRE.hasSubscribers) return ask();
    const progress = { nested: false, hasWaited: false };
    const context: AcquireContext = { ...this.#signature, ...call.subject, ...progress };
    call.observed = context;
    const since = this.#clock.now();
    return traced(ACQUIRE, context, async () => {
      try {
        const result = await ask();
        context.outcome = 'granted';
        return result;
      } catch (error) {
        context.outcome = outcomeOf(error, call.signal);
        throw error;
      } finally {
        context.waitedMs = Math.round(elapsedMs(since, this.#clock.now()));
      }
    });
  }

  /** Publishes that a caller has the lock from now on. */
  holdBegan(lock: RecordedLock): void {
    if (!HOLD.hasSubscribers || lock.isOver) return;
    lock.hold = { ...this.#signature, ...lock.subject, follows: lock.follows };
    lock.follows = undefined;
    began(HOLD, lock.hold);
  }

  /** Publishes that the lock is no longer held. Does nothing if its beginning was not published. */
  holdEnded(lock: RecordedLock, end: HoldEnd): void {
    const { hold } = lock;
    if (hold?.outcome !== undefined || hold === undefined) return;
    const { outcome, heldMs, reason } = end;
    hold.outcome = outcome;
    hold.heldMs = heldMs;
    if (reason !== undefined) {
      hold.reason = reason;
      hold.error ??= lock.loss(reason);
    }
    ended(HOLD, hold);
    // A long line of turns would be kept in memory by its last one.
    hold.follows = undefined;
  }

  /** Publishes a batch of renewals. */
  renewal<Outcome extends { readonly status: 'extended' | 'lost' | 'unavailable' }>(
    batch: readonly RecordedLock[],
    ask: () => Promise<readonly Outcome[]>,
  ): Promise<readonly Outcome[]> {
    if (!RENEW.hasSubscribers) return ask();
    const signature = this.#signature;
    const leases: RenewedLease[] = batch.map(({ subject }) => ({ ...signature, ...subject }));
    const context: RenewContext = { ...signature, leases };
    return traced(RENEW, context, ask, (outcomes) => {
      for (const [index, lease] of leases.entries()) {
        const status = outcomes[index]?.status ?? 'unavailable';
        lease.outcome = status === 'extended' ? 'renewed' : status;
      }
    });
  }

  /** Publishes a release that the store is asked for. */
  release<Outcome extends { readonly status: 'released' | 'not-held' | 'unavailable' }>(
    lock: RecordedLock,
    heldMs: number,
    ask: () => Promise<Outcome>,
  ): Promise<Outcome> {
    if (!RELEASE.hasSubscribers) return ask();
    const context: ReleaseContext = { ...this.#signature, ...lock.subject, heldMs };
    return traced(RELEASE, context, ask, ({ status }) => {
      context.outcome = status === 'not-held' ? 'lost' : status;
    });
  }
}

function currentNameOf(name: LockEventName): CurrentEventName {
  if (!Object.hasOwn(FORMER_EVENTS, name)) return name as CurrentEventName;
  const current = FORMER_EVENTS[name as keyof typeof FORMER_EVENTS];
  warnOfFormerName(`The event "${name}"`, `"${current}"`);
  return current;
}

function outcomeOf(error: unknown, signal: AbortSignal | undefined): AcquireContext['outcome'] {
  if (error instanceof LockNotAcquiredError) return 'refused';
  if (error instanceof LockStoreUnavailableError) return 'unavailable';
  if (error instanceof LockServiceClosedError) return 'closed';
  if (error instanceof LockDeadlockError) return 'deadlock';
  return signal?.aborted === true && error === signal.reason ? 'aborted' : 'failed';
}
