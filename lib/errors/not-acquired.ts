import { LockError } from './lock-error.js';
import { keysPhrase, keysWere, quoteKeys } from './quote-keys.js';

/** A holder in the same process, as far as it is known. */
export interface HeldHere {
  readonly heldMs?: number | undefined;
  /** Where it acquired the lock, if that is known. */
  readonly place?: string | undefined;
  /** Whether the holder is a section that the refused call runs in. */
  readonly isAround?: boolean | undefined;
}

/** The end of a sentence: the holder, and for how long it holds the lock. */
function holderPhrase(retryAfterMs: number, waitedMs: number, heldHere?: HeldHere): string {
  if (retryAfterMs === Infinity)
    return (
      'nothing tells when it will be free. Either other software holds it with a lock that has no TTL, which an operator can ' +
      'delete ("forceRelease"), or "setLimit" allows fewer places than the call wants.'
    );
  const left = `for up to ${String(Math.ceil(retryAfterMs))} ms more`;
  const tryAgain = `Try again later, or ${waitedMs > 0 ? 'wait longer' : 'pass "wait" to stand in line'}.`;
  if (heldHere === undefined) return `held by another owner ${left}. ${tryAgain}`;
  const { heldMs, place, isAround = false } = heldHere;
  const since = heldMs === undefined ? '' : ` for ${String(Math.round(heldMs))} ms`;
  const where = place === undefined ? '' : `, acquired at ${place}`;
  if (isAround)
    return (
      `held${since} by the run(), @WithLock or @RunOnce around this very call${where}: ` +
      'use run(), which shares the lock of the outer call, or leave this acquire() out.'
    );
  // Held for the whole wait: the lock may be forgotten, or be the caller's own.
  const forgotten =
    waitedMs > 0 && (heldMs ?? 0) >= waitedMs
      ? ' If acquire() took it and it was forgotten, release it in a finally block.'
      : '';
  return `held${since} in this same process${where}, and ${left} unless it is renewed. ${tryAgain}${forgotten}`;
}

/** Another caller holds the lock (HTTP 409). Nothing was locked. */
export class LockNotAcquiredError extends LockError {
  /** Whole milliseconds until the holder's lease ends if it is not renewed; a hint for when to try again. */
  readonly retryAfterMs: number;
  /** How long this call waited, in milliseconds. */
  readonly waitedMs: number;

  constructor(facts: {
    readonly keys: readonly string[];
    readonly retryAfterMs: number;
    readonly waitedMs: number;
    /** The holder is in this process. */
    readonly heldHere?: HeldHere | undefined;
  }) {
    const waited =
      facts.waitedMs > 0 ? ` after waiting ${String(Math.round(facts.waitedMs))} ms` : '';
    const { keys, retryAfterMs, waitedMs, heldHere } = facts;
    super({
      code: 'LOCK_NOT_ACQUIRED',
      keys: facts.keys,
      clientMessage: 'Somebody else is working on this right now. Try again later.',
      message: (lock) => `The ${lock} is held by another caller.`,
      retryAfterMs: facts.retryAfterMs,
      detail: `${keysPhrase(keys)} could not be acquired${waited}: ${holderPhrase(retryAfterMs, waitedMs, heldHere)}`,
    });
    this.retryAfterMs = Math.ceil(facts.retryAfterMs);
    this.waitedMs = facts.waitedMs;
  }
}

/** The error names at most this many calls of a circle. */
const MOST_CALLS_NAMED = 10;

/**
 * The call would wait in a circle (HTTP 409). It waits, inside a section, for a key whose holder waits, directly or
 * over others, for a key that this section holds. Without the error it would wait until one of them gives up.
 *
 * Only the call that closes the circle is rejected. The others continue as soon as its section has ended. Circles are
 * detected within one process.
 */
export class LockDeadlockError extends LockError {
  /**
   * The key that was asked for, the key that its holder waits for, and so on. This call's section holds the last one.
   */
  readonly circle: readonly string[];

  constructor(facts: { readonly keys: readonly string[]; readonly circle: readonly string[] }) {
    const [first = '', ...others] = facts.circle;
    const way = others
      .slice(0, MOST_CALLS_NAMED)
      .map(
        (key, index) =>
          `${index === 0 ? 'a call' : 'another one,'} which waits for ${quoteKeys([key])}, held by `,
      );
    const unnamed = others.length - way.length;
    if (unnamed > 0)
      way.push(`${String(unnamed)} more calls that wait one for the other, the last one for `);
    super({
      code: 'LOCK_DEADLOCK',
      keys: facts.keys,
      clientMessage: 'This operation and another one waited for each other. Try again later.',
      message: (lock) =>
        `The ${lock} was not waited for: its holder waits for a lock that this call holds.`,
      retryAfterMs: Infinity,
      detail:
        `${keysWere(facts.keys)} not waited for, because that would never end: ${quoteKeys([first])} is held by ` +
        `${way.join('')}this call. ` +
        'Take all of the keys in one call, or in the same order everywhere.',
    });
    this.circle = facts.circle;
  }
}

/** The application is shutting down: no new locks are granted, and waiting calls are rejected (HTTP 503). */
export class LockServiceClosedError extends LockError {
  constructor(keys: readonly string[]) {
    super({
      code: 'LOCK_SERVICE_CLOSED',
      keys,
      clientMessage: 'The service is shutting down. Try again later.',
      message: (lock) => `The ${lock} was not acquired: the lock service is shutting down.`,
      retryAfterMs: Infinity,
      detail: `${keysWere(keys)} not acquired: this LockService is shutting down and grants no more locks.`,
    });
  }
}
