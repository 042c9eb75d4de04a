import { applyDecorators } from '@nestjs/common';
import {
  ApiConflictResponse,
  ApiServiceUnavailableResponse,
  type ApiResponseNoStatusOptions,
} from '@nestjs/swagger';
import {
  LockNotAcquiredError,
  LockStoreUnavailableError,
  type LockErrorBody,
  type LockErrorCode,
} from '../errors.js';

/** Changes of the two documented responses. */
export interface ApiLockConflictOptions {
  /**
   * The response 409, as `@ApiConflictResponse` takes it. With a `type` or a `schema` of your own it replaces ours: for
   * `errors.body`.
   */
  readonly conflict?: ApiResponseNoStatusOptions;
  /** The response 503, as `@ApiServiceUnavailableResponse` takes it, likewise. */
  readonly unavailable?: ApiResponseNoStatusOptions;
}

const CONFLICTS = [
  'LOCK_NOT_ACQUIRED',
  'LOCK_LOST',
  'LOCK_NOT_ATTACHED',
  'LOCK_FENCED',
  'LOCK_DEADLOCK',
  'WORK_EXHAUSTED',
] as const satisfies readonly LockErrorCode[];

const OUTAGES = [
  'LOCK_STORE_UNAVAILABLE',
  'LOCK_SERVICE_CLOSED',
] as const satisfies readonly LockErrorCode[];

const RETRY_AFTER = {
  'Retry-After': {
    description:
      'The number of seconds after which another try may succeed. Missing where it would not.',
    schema: { type: 'integer' },
  },
} as const;

/** The body of a lock error, by an example of it. */
const bodyLike = (example: LockErrorBody, codes: readonly LockErrorCode[]) => ({
  type: 'object',
  required: Object.keys(example),
  properties: {
    statusCode: { type: 'integer', enum: [example.statusCode] },
    message: { type: 'string', example: example.message },
    error: { type: 'string', example: example.error },
    code: { type: 'string', enum: [...codes], example: example.code },
  },
});

function answer(
  description: string,
  example: LockErrorBody,
  codes: readonly LockErrorCode[],
  given: ApiResponseNoStatusOptions = {},
): ApiResponseNoStatusOptions {
  const schema = 'type' in given ? {} : { schema: bodyLike(example, codes) };
  return { description, headers: RETRY_AFTER, ...schema, ...given };
}

/**
 * Documents the error responses of a locked handler, or of the handlers of a controller, with their bodies and
 * `Retry-After`. They are 409 when the lock is held or was lost, and 503 when the lock store is not reachable.
 *
 * Swagger leaves out the result that it adds by default if a method has a response decorator: add
 * `@ApiCreatedResponse()` or `@ApiOkResponse()`.
 *
 * @example
 * ```ts
 * import { Param, Post } from '@nestjs/common';
 * import { ApiCreatedResponse } from '@nestjs/swagger';
 * import { WithLock } from 'nestjs-holdfast';
 * import { ApiLockConflict } from 'nestjs-holdfast/swagger';
 *
 * class OrdersController {
 *   @Post(':id/pay')
 *   @WithLock('order:<id>')
 *   @ApiCreatedResponse()
 *   @ApiLockConflict()
 *   async pay(@Param('id') id: string): Promise<Receipt> {
 *     return charge(id);
 *   }
 * }
 * ```
 */
export function ApiLockConflict(
  options: ApiLockConflictOptions = {},
): MethodDecorator & ClassDecorator {
  const refused = new LockNotAcquiredError({ keys: [], retryAfterMs: 0, waitedMs: 0 });
  const outage = new LockStoreUnavailableError({ operation: 'acquire', keys: [], nodes: [] });
  return applyDecorators(
    ApiConflictResponse(
      answer(
        'Somebody else is working on this right now, or the lock was lost while the work ran.',
        refused.getResponse(),
        CONFLICTS,
        options.conflict,
      ),
    ),
    ApiServiceUnavailableResponse(
      answer(
        'No lock can be taken at the moment.',
        outage.getResponse(),
        OUTAGES,
        options.unavailable,
      ),
    ),
  );
}
