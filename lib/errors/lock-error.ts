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
  /** What is wrong in the application, without keys and values; else that of the body. */
  readonly message?: string | undefined;
  /** After so many ms asking again may help; `Infinity`: nobody knows. Missing where asking again is not the answer. */
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/** Where nobody knows how long. */
const RETRY_AFTER_MS = 1_000;

/** What a GraphQL server puts beside the message. */
export interface LockErrorExtensions {
  readonly code: LockErrorCode;
  /** The status that HTTP would have. */
  readonly status: number;
  readonly retryAfterMs?: number;
  readonly [extra: string]: unknown;
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
 * answers with the right status. `message` names no key, no value and no server, because many transports send it to the client as it is;
 * `detail` and the other properties do, for logs.
 */
export abstract class LockError extends Base {
  readonly code: LockErrorCode;
  /** The keys that were asked for, as the application wrote them (without `keyPrefix`). */
  readonly keys: readonly string[];
  /** What happened, in full, with keys and servers. For logs. */
  readonly detail: string;
  /** @internal After so many ms asking again may help; `undefined` where that is not the answer. */
  readonly retryHintMs: number | undefined;
  #body: LockErrorBody;
  #presented = false;

  protected constructor({ code, keys = [], body, detail, cause, ...facts }: LockErrorFacts) {
    const whole: LockErrorBody = { ...body, code };
    // A text, not the body: Nest's driver for Apollo would put a code of its own in the place of ours.
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

  /** What GraphQL servers put beside `message`, wherever it was thrown: they take it from the error itself. */
  get extensions(): LockErrorExtensions {
    const { statusCode: status, message: _message, error: _error, ...others } = this.reply;
    return { ...others, status };
  }

  /** Filters put their own in its place. */
  set extensions(value: LockErrorExtensions) {
    Object.defineProperty(this, 'extensions', { value, writable: true, configurable: true });
  }

  /** @internal The body, for transports that have no header to say when asking again may help. */
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

  /** @internal Lets the module's `errors` option change the response, once, however many hands the error passes through. */
  presentAs(change: (body: LockErrorBody) => LockErrorBody): void {
    if (this.#presented) return;
    this.#presented = true;
    const usual = this.#body;
    this.#body = change(usual);
    // An application may leave anything in its body.
    if (this.message === usual.message && typeof this.#body.message === 'string')
      this.message = this.#body.message;
  }

  /** As a client may see it. */
  toJSON(): LockErrorBody {
    return this.#body;
  }
}

function hintFrom(retryAfterMs: number | undefined): number | undefined {
  if (retryAfterMs === undefined) return undefined;
  return retryAfterMs === Infinity ? RETRY_AFTER_MS : Math.max(1, Math.ceil(retryAfterMs));
}
