import type { HttpException } from '@nestjs/common';
import { docsOf } from './catalogue.js';

/** The machine-readable `code` of every lock error and of its response body. */
export type LockErrorCode =
  | 'LOCK_NOT_ACQUIRED'
  | 'LOCK_LOST'
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
  readonly detail: string;
  /** The fault of the application, without keys and values; else the message of the body. */
  readonly message?: string | undefined;
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

/** Replaces Nest's class until `nest/http-exceptions.ts` sets that; without Nest, permanently. */
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
 * `message` names no key, value or server, because many transports send it to the client. `detail` and the other
 * properties name them, for logs.
 */
export abstract class LockError extends Base {
  readonly code: LockErrorCode;
  /** The keys that were asked for, as the application wrote them (without `keyPrefix`). */
  readonly keys: readonly string[];
  /** The full description, with keys and servers. For logs. */
  readonly detail: string;
  /** @internal How long, in ms, to wait before another try; `undefined` if another try does not help. */
  readonly retryHintMs: number | undefined;
  #body: LockErrorBody;
  #presented = false;

  protected constructor({ code, keys = [], body, detail, cause, ...facts }: LockErrorFacts) {
    const whole: LockErrorBody = { ...body, code };
    // A text, not the body: Nest's driver for Apollo would replace our code by its own.
    super(body.message, body.statusCode, cause === undefined ? {} : { cause });
    this.name = new.target.name;
    this.code = code;
    this.keys = keys;
    this.message = facts.message ?? body.message;
    this.detail = detail;
    this.retryHintMs = hintFrom(facts.retryAfterMs);
    this.#body = whole;
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
    if (this.message === usual.message && typeof this.#body.message === 'string')
      this.message = this.#body.message;
  }

  /** The body, as a client may see it. */
  toJSON(): LockErrorBody {
    return this.#body;
  }
}

function hintFrom(retryAfterMs: number | undefined): number | undefined {
  if (retryAfterMs === undefined) return undefined;
  return retryAfterMs === Infinity ? RETRY_AFTER_MS : Math.max(1, Math.ceil(retryAfterMs));
}
