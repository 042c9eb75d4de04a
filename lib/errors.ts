import type { HttpException } from '@nestjs/common';
import { quoteKeys } from './key/quote-keys.js';

/** The machine-readable `code` of every lock error and of its response body. */
export type LockErrorCode =
  | 'LOCK_NOT_ACQUIRED'
  | 'LOCK_LOST'
  | 'LOCK_STORE_UNAVAILABLE'
  | 'LOCK_SERVICE_CLOSED'
  | 'LOCK_KEY_INVALID'
  | 'LOCK_REENTRANCY'
  | 'LOCK_DEADLOCK'
  | 'LOCK_NOT_BOUND'
  | 'LOCK_RETURN_KIND'
  | 'WORK_EXHAUSTED';

/** Why a lock that was held is held no longer, although nobody released it through its handle. */
export type LockLossReason =
  /** The validity ran out: no renewal was asked for, or the event loop was blocked past the deadline. */
  | 'expired'
  /** The store holds somebody else's token. */
  | 'stolen'
  /** The key is gone from the store although the validity still ran: forced release, deletion, data loss. */
  | 'released-elsewhere'
  /** The store did not answer before the validity ran out. */
  | 'store-unavailable'
  /** `maxHold` was reached. */
  | 'max-hold'
  /** The application shut down and its drain time was over. */
  | 'shutdown';

/** Why a lock that is asked for protects nothing. */
export type LockLostReason =
  | LockLossReason
  /** `release()` was called: the handle is no longer a lock. */
  | 'released'
  /** `LockService.assertHeld`: the calling code does not run under the lock at all. */
  | 'not-held';

/** The body of a response that reports a lock error: Nest's usual one and a machine-readable `code`. */
export interface LockErrorBody {
  readonly statusCode: number;
  readonly message: string;
  readonly error: string;
  readonly code: LockErrorCode;
  readonly [extra: string]: unknown;
}

interface LockErrorFacts {
  readonly code: LockErrorCode;
  readonly keys?: readonly string[];
  readonly body: { readonly statusCode: number; readonly message: string; readonly error: string };
  /** For logs: may name keys, never tokens or secrets. */
  readonly message: string;
  readonly cause?: unknown;
}

/** What stands in the place of Nest's class until that is put there, by `nest/http-exceptions.ts`; without Nest, for good. */
class PlainException extends Error {
  constructor(_response: unknown, _status: number, options: ErrorOptions) {
    super('', options);
  }
}

const Base = PlainException as unknown as typeof HttpException;

/**
 * Base of everything that Holdfast throws at run time. It is an `HttpException` wherever Nest is, so that any filter, of Nest's or of yours,
 * answers with the right status. `message` is for logs and names the key; the response body does not.
 */
export abstract class LockError extends Base {
  readonly code: LockErrorCode;
  /** The keys that were asked for, as the application wrote them (without `keyPrefix`). */
  readonly keys: readonly string[];
  #body: LockErrorBody;
  #presented = false;

  protected constructor({ code, keys = [], body, message, cause }: LockErrorFacts) {
    const whole: LockErrorBody = { ...body, code };
    super(whole, whole.statusCode, cause === undefined ? {} : { cause });
    this.name = new.target.name;
    this.code = code;
    this.keys = keys;
    this.message = message;
    this.#body = whole;
  }

  override getResponse(): LockErrorBody {
    return this.#body;
  }

  override getStatus(): number {
    return this.#body.statusCode;
  }

  /** @internal Lets the module's `errors` option change the response, once, however many hands the error passes through. */
  presentAs(change: (body: LockErrorBody) => LockErrorBody): void {
    if (this.#presented) return;
    this.#presented = true;
    this.#body = change(this.#body);
  }
}

const INTERNAL = {
  statusCode: 500,
  message: 'Internal server error',
  error: 'Internal Server Error',
};

const keysPhrase = (keys: readonly string[]): string =>
  keys.length === 1 ? `Lock ${quoteKeys(keys)}` : `Locks ${quoteKeys(keys)}`;

const wasOrWere = (keys: readonly string[]): string => (keys.length === 1 ? 'was' : 'were');

/** What is known of a holder in the same process. */
export interface HeldHere {
  readonly heldMs?: number | undefined;
  /** Where it acquired the lock, if that is known. */
  readonly place?: string | undefined;
  /** Whether it is a section that the refused call runs in. */
  readonly isAround?: boolean | undefined;
}

/** The end of a sentence: who holds it, and for how long. */
function holderPhrase(retryAfterMs: number, waitedMs: number, heldHere?: HeldHere): string {
  if (retryAfterMs === Infinity)
    return 'other software holds it with a lock that has no TTL, until it releases that or somebody deletes it ("forceRelease").';
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
  // Held for all of the wait: it may be forgotten, or be the caller's own.
  const forgotten =
    waitedMs > 0 && heldMs !== undefined && heldMs >= waitedMs
      ? ' If acquire() took it and it was forgotten, release it in a finally block.'
      : '';
  return `held${since} in this same process${where}, and ${left} unless it is renewed. ${tryAgain}${forgotten}`;
}

/** The lock is held by somebody else (HTTP 409). Nothing was locked. */
export class LockNotAcquiredError extends LockError {
  /** Milliseconds until the holder's lease ends if it is not renewed; a hint for when to ask again. */
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
    super({
      code: 'LOCK_NOT_ACQUIRED',
      keys: facts.keys,
      body: {
        statusCode: 409,
        message: 'Somebody else is working on this right now. Try again later.',
        error: 'Conflict',
      },
      message:
        `${keysPhrase(facts.keys)} could not be acquired${waited}: ` +
        holderPhrase(facts.retryAfterMs, facts.waitedMs, facts.heldHere),
    });
    this.retryAfterMs = facts.retryAfterMs;
    this.waitedMs = facts.waitedMs;
  }
}

const LOST_SENTENCE: Readonly<Record<LockLostReason, string>> = {
  expired: 'its validity ran out before it was renewed',
  stolen: 'another owner holds it now',
  'released-elsewhere':
    'it is no longer in the store (released by force, deleted, evicted, or the store lost its data)',
  'store-unavailable': 'the store did not confirm a renewal before the validity ran out',
  'max-hold': 'it was held for longer than "maxHold"',
  shutdown: 'the application shut down before the work ended',
  released: 'it was released already',
  'not-held':
    'the calling code does not run in a section that holds it, or that section is over: is an await missing in its work?',
};

/**
 * The lock was held and is no longer (HTTP 409). The work that ran under it may have taken effect, partly or wholly, and
 * somebody else may be at work already. `reason` says what happened.
 */
export class LockLostError extends LockError {
  readonly reason: LockLostReason;
  readonly fencingToken: number | undefined;

  constructor(facts: {
    readonly keys: readonly string[];
    readonly reason: LockLostReason;
    readonly fencingToken?: number | undefined;
    readonly cause?: unknown;
  }) {
    super({
      code: 'LOCK_LOST',
      keys: facts.keys,
      body: {
        statusCode: 409,
        message:
          'The lock was lost while the work ran. The work may have taken effect: check before you try again.',
        error: 'Conflict',
      },
      message:
        facts.reason === 'not-held'
          ? `${keysPhrase(facts.keys)} ${wasOrWere(facts.keys)} asserted, but ${LOST_SENTENCE[facts.reason]}`
          : `${keysPhrase(facts.keys)} ${wasOrWere(facts.keys)} lost: ${LOST_SENTENCE[facts.reason]}. The work done under it may have taken effect; ` +
            'check before you repeat it, and let the resource refuse old fencing tokens.',
      cause: facts.cause,
    });
    this.reason = facts.reason;
    this.fencingToken = facts.fencingToken;
  }
}

/** What happened at one node of the store. */
export interface NodeFailure {
  /** `host:port`, never with credentials. */
  readonly node: string;
  /**
   * `'timeout'`: no answer in time, or none that was in time. `'connection'`: not connected, or the connection broke. `'error'`: it
   * answered with an error. `'refused'`: it is there, and did not vote for the lock.
   */
  readonly kind: 'timeout' | 'connection' | 'error' | 'refused';
  /** Redacted. */
  readonly message: string;
}

/**
 * The store did not answer, so nobody knows whether the lock is free (HTTP 503). Nothing runs unlocked: the call failed, and
 * whatever it may have left in the store is cleaned up when the store answers again.
 */
export class LockStoreUnavailableError extends LockError {
  readonly nodes: readonly NodeFailure[];

  constructor(facts: {
    readonly operation: string;
    readonly keys: readonly string[];
    readonly nodes: readonly NodeFailure[];
  }) {
    const what = facts.nodes
      .map(({ node, kind, message }) => `${node} (${kind}): ${message}`)
      .join('; ');
    const kinds = new Set(facts.nodes.map(({ kind }) => kind));
    let remedy = 'Try again later.';
    if (kinds.has('timeout') || kinds.has('connection'))
      remedy = 'Check that Redis is reachable and try again.';
    else if (!kinds.has('refused'))
      remedy = 'Redis is there, but answered with an error: that must be mended first.';
    const nothingRan = facts.operation === 'acquire' ? 'Nothing ran without a lock. ' : '';
    const target = facts.keys.length === 0 ? 'the lock store' : quoteKeys(facts.keys);
    super({
      code: 'LOCK_STORE_UNAVAILABLE',
      keys: facts.keys,
      body: {
        statusCode: 503,
        message: 'The lock store is not available. Try again later.',
        error: 'Service Unavailable',
      },
      message:
        `Could not ${facts.operation} ${target}: the lock store is not available (${what}). ` +
        `${nothingRan}${remedy}`,
    });
    this.nodes = facts.nodes;
  }
}

/** The application is shutting down: no new locks, and callers in line are sent away (HTTP 503). */
export class LockServiceClosedError extends LockError {
  constructor(keys: readonly string[]) {
    super({
      code: 'LOCK_SERVICE_CLOSED',
      keys,
      body: {
        statusCode: 503,
        message: 'The service is shutting down. Try again later.',
        error: 'Service Unavailable',
      },
      message: `${keysPhrase(keys)} ${wasOrWere(keys)} not acquired: this LockService is shutting down and grants no more locks.`,
    });
  }
}

/** A key that must not be locked (HTTP 400 when its value came from the request, else 500). */
export class LockKeyError extends LockError {
  /** Whether the value came from the request, so that its sender is to blame. */
  readonly fromRequest: boolean;
  readonly problem: string;
  /** @internal The value that is at fault, as its template names it. */
  readonly what: string | undefined;

  constructor(facts: {
    readonly problem: string;
    readonly fromRequest?: boolean;
    readonly what?: string;
  }) {
    const fromRequest = facts.fromRequest ?? false;
    super({
      code: 'LOCK_KEY_INVALID',
      body: fromRequest
        ? {
            statusCode: 400,
            message: 'A value that identifies what to lock is missing or not valid.',
            error: 'Bad Request',
          }
        : INTERNAL,
      message: facts.problem,
    });
    this.fromRequest = fromRequest;
    this.problem = facts.problem;
    this.what = facts.what;
  }
}

/** A section asks for a lock that it holds itself in a way that would wait for ever, or that it said it would not. */
export class LockReentrancyError extends LockError {
  constructor(facts: { readonly keys: readonly string[]; readonly problem: string }) {
    super({ code: 'LOCK_REENTRANCY', keys: facts.keys, body: INTERNAL, message: facts.problem });
  }
}

/** The most calls of a circle that an error tells of one by one. */
const MOST_CALLS_NAMED = 10;

/**
 * The call waits, inside a section, for a key that is held by a section which waits, over others perhaps, for one that this call's own
 * section holds (HTTP 409): it would wait for ever, or until one of them gives up. Told at once to the one that closes the circle; the
 * others go on as soon as its section has ended. Seen within one process.
 */
export class LockDeadlockError extends LockError {
  /** The key that was asked for, what its holder waits for, and so on; the last one is held around this call. */
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
      body: {
        statusCode: 409,
        message: 'This operation and another one waited for each other. Try again later.',
        error: 'Conflict',
      },
      message:
        `${keysPhrase(facts.keys)} ${wasOrWere(facts.keys)} not waited for, because that would never end: ${quoteKeys([first])} is held by ` +
        `${way.join('')}this call. ` +
        'Take all of the keys in one call, or in the same order everywhere.',
    });
    this.circle = facts.circle;
  }
}

/** A `@WithLock` method was called on an object that no `LockService` was bound to. The method did not run. */
export class LockNotBoundError extends LockError {
  constructor(problem: string) {
    super({ code: 'LOCK_NOT_BOUND', body: INTERNAL, message: problem });
  }
}

/** A `@WithLock` method returned something other than its `returns` option says. */
export class LockReturnKindError extends LockError {
  constructor(problem: string, keys: readonly string[] = []) {
    super({ code: 'LOCK_RETURN_KIND', keys, body: INTERNAL, message: problem });
  }
}

/** Work that is to be done once (`@RunOnce`) has failed too often, or for good, and is not tried any more (HTTP 409). */
export class WorkExhaustedError extends LockError {
  /** How many attempts have been begun. */
  readonly attempts: number;
  /** The message of the error that the last one ended with, shortened; none if it died. */
  readonly lastError: string | undefined;

  constructor(facts: {
    readonly keys: readonly string[];
    readonly attempts: number;
    readonly lastError?: string | undefined;
  }) {
    const { keys, attempts, lastError } = facts;
    const end = lastError === undefined ? '' : ` The last one ended with: ${lastError}`;
    super({
      code: 'WORK_EXHAUSTED',
      keys,
      body: {
        statusCode: 409,
        message: 'This has been tried without success, and is not tried again.',
        error: 'Conflict',
      },
      message: `The work ${quoteKeys(keys)} is not tried any more, after ${attempts === 1 ? '1 attempt' : `${String(attempts)} attempts`}.${end}`,
    });
    this.attempts = attempts;
    this.lastError = lastError;
  }
}

/** An option or a decorator is wrong. Thrown when the class is defined, when the module starts, or by the call that brought it. */
export class LockConfigurationError extends Error {
  override readonly name = 'LockConfigurationError';
}
