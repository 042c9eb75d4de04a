import type { HttpException } from '@nestjs/common';

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
