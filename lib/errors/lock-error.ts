import type { HttpException } from '@nestjs/common';
import { docsOf } from './configuration.js';

/** The machine-readable `code` of every lock error and of its response body. */
export type LockErrorCode =
  | 'LOCK_NOT_ACQUIRED'
  | 'LOCK_LOST'
  | 'LOCK_REPLACED'
  | 'LOCK_NOT_ATTACHED'
  | 'LOCK_FENCED'
  | 'LOCK_STORE_UNAVAILABLE'
  | 'LOCK_SERVICE_CLOSED'
  | 'LOCK_KEY_INVALID'
  | 'LOCK_REENTRANCY'
  | 'LOCK_DEADLOCK'
  | 'LOCK_NOT_BOUND'
  | 'LOCK_RETURN_KIND'
  | 'WORK_EXHAUSTED';

/** What the body of a response calls its status. The table of Node is not in a browser, where the documentation shows errors. */
const REASONS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  409: 'Conflict',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
};

/** The HTTP status of each error. */
export const STATUS: Readonly<Record<LockErrorCode, number>> = {
  LOCK_NOT_ACQUIRED: 409,
  LOCK_LOST: 409,
  LOCK_REPLACED: 409,
  LOCK_NOT_ATTACHED: 409,
  LOCK_FENCED: 409,
  LOCK_STORE_UNAVAILABLE: 503,
  LOCK_SERVICE_CLOSED: 503,
  LOCK_KEY_INVALID: 500,
  LOCK_REENTRANCY: 500,
  LOCK_DEADLOCK: 409,
  LOCK_NOT_BOUND: 500,
  LOCK_RETURN_KIND: 500,
  WORK_EXHAUSTED: 409,
};

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
  /** Default: that of the code. */
  readonly status?: number | undefined;
  /** For logs: may name keys, never tokens or secrets. */
  readonly detail: string;
  /** What clients get that show `message`. It is also the message of the body, except for a fault of the application. */
  readonly clientMessage: string;
  /** The message, for logs, with `lock order:<orderId>` or `lock`: it names no value. Default: the one for clients. */
  readonly message?: ((lock: string) => string) | undefined;
  /** `order:<orderId>`, if that is known already. */
  readonly lock?: string | undefined;
  /** How long, in ms, to wait before another try; `Infinity`: unknown. Missing if another try does not help. */
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/** The time to wait before another try, if it is unknown. */
const RETRY_AFTER_MS = 1_000;

/** The extensions that a GraphQL server sends beside the message. */
export interface LockErrorExtensions {
  readonly code: LockErrorCode;
  /** The status that HTTP would have. */
  readonly status: number;
  readonly retryAfterMs?: number;
  readonly [extra: string]: unknown;
}

/** Replaces Nest's class until `nest/lock.service.ts` sets that; without Nest, permanently. */
class PlainException extends Error {
  constructor(_response: unknown, _status: number, options: ErrorOptions) {
    super('', options);
  }
}

const Base = PlainException as unknown as typeof HttpException;

/**
 * The base of all errors that Holdfast throws at run time. In a Nest application it is an `HttpException`, so any
 * filter, of Nest's or of yours, answers with the right status.
 *
 * `message` names the key template or the method, and no key, value or server, because some transports send it to
 * the client. So error trackers group errors by it. `detail` and the other properties name keys and servers, for logs.
 */
export abstract class LockError extends Base {
  readonly code: LockErrorCode;
  /** The keys that were asked for, as the application wrote them (without `keyPrefix`). */
  readonly keys: readonly string[];
  /** The full description, with keys and servers. For logs. */
  readonly detail: string;
  #retryHintMs: number | undefined;
  #body: LockErrorBody;
  #clientMessage: string;
  /** Until the lock is named. */
  #messageOf: ((lock: string) => string) | undefined;
  #presented = false;

  protected constructor({
    code,
    keys = [],
    clientMessage,
    detail,
    cause,
    ...facts
  }: LockErrorFacts) {
    const { status = STATUS[code] } = facts;
    const message = status === 500 ? 'Internal server error' : clientMessage;
    // A text, not the body: Nest's driver for Apollo would replace our code by its own.
    super(message, status, cause === undefined ? {} : { cause });
    this.name = new.target.name;
    this.code = code;
    this.keys = keys;
    this.#clientMessage = clientMessage;
    this.#messageOf = facts.message;
    this.message = facts.message?.(phraseOf(facts.lock)) ?? clientMessage;
    if (facts.lock !== undefined) this.#messageOf = undefined;
    this.detail = detail;
    this.#retryHintMs = hintFrom(facts.retryAfterMs);
    this.#body = { statusCode: status, message, error: REASONS[status] ?? '', code };
  }

  /** @internal How long, in ms, to wait before another try; `undefined` if another try does not help. */
  get retryHintMs(): number | undefined {
    return this.#retryHintMs;
  }

  /** The address of the documentation of `code`. For logs: no client gets it. */
  get docs(): string {
    return docsOf(this.code);
  }

  /**
   * The extensions that GraphQL servers send beside `message`. They take them from the error itself, so it may be
   * thrown anywhere.
   */
  get extensions(): LockErrorExtensions {
    const { statusCode: status, message: _message, error: _error, ...others } = this.reply;
    return { ...others, status };
  }

  /** Filters set their own extensions. */
  set extensions(value: LockErrorExtensions) {
    Object.defineProperty(this, 'extensions', { value, writable: true, configurable: true });
  }

  /**
   * @internal A GraphQL server reads `path` of an error, wherever that was thrown, before it copies `message` into its
   * response. No interceptor sees the errors of field resolvers.
   */
  get path(): undefined {
    this.addressClient();
    return undefined;
  }

  set path(value: unknown) {
    Object.defineProperty(this, 'path', { value, writable: true, configurable: true });
  }

  /** @internal The body, with `retryAfterMs` for transports that have no header for it. */
  get reply(): LockErrorBody & { readonly retryAfterMs?: number } {
    const { retryHintMs: retryAfterMs } = this;
    return retryAfterMs === undefined ? this.#body : { ...this.#body, retryAfterMs };
  }

  override getResponse(): LockErrorBody {
    return this.#body;
  }

  override getStatus(): number {
    return this.#body.statusCode;
  }

  /**
   * @internal Applies the module's `errors` option to the response, once, even if several handlers pass the error on.
   */
  presentAs(change: (body: LockErrorBody) => LockErrorBody): void {
    if (this.#presented) return;
    this.#presented = true;
    const usual = this.#body;
    this.#body = change(usual);
    // An application may return a body whose message is no text.
    if (this.#clientMessage === usual.message && typeof this.#body.message === 'string')
      this.#clientMessage = this.#body.message;
  }

  /** @internal Names the lock in the message, unless it is named: `order:<orderId>`. */
  nameLock(lock: string | undefined): void {
    if (lock === undefined || this.#messageOf === undefined) return;
    this.message = this.#messageOf(phraseOf(lock));
    this.#messageOf = undefined;
  }

  /** @internal Another try may succeed sooner. */
  hintAtMost(estimateMs: number): void {
    const estimate = hintFrom(estimateMs);
    if (this.#retryHintMs !== undefined && estimate !== undefined)
      this.#retryHintMs = Math.min(this.#retryHintMs, estimate);
  }

  /** @internal For transports that send `message` to clients: from here on, it is the text for them. */
  addressClient(): void {
    this.message = this.#clientMessage;
  }

  /** The body, as a client may see it. */
  toJSON(): LockErrorBody {
    return this.#body;
  }
}

const phraseOf = (lock: string | undefined): string =>
  lock === undefined ? 'lock' : `lock ${lock}`;

function hintFrom(retryAfterMs: number | undefined): number | undefined {
  if (retryAfterMs === undefined) return undefined;
  return retryAfterMs === Infinity ? RETRY_AFTER_MS : Math.max(1, Math.ceil(retryAfterMs));
}
