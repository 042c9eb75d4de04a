import { applyDecorators } from '@nestjs/common';
import {
  ApiConflictResponse,
  ApiServiceUnavailableResponse,
  type ApiResponseNoStatusOptions,
} from '@nestjs/swagger';
import { LockNotAcquiredError, LockStoreUnavailableError, type LockErrorBody } from '../errors.js';
import { STATUS } from '../errors/lock-error.js';

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

const RETRY_AFTER = {
  'Retry-After': {
    description:
      'The number of seconds after which another try may succeed. Missing where it would not.',
    schema: { type: 'integer' },
  },
} as const;

const codesWith = (status: number): readonly string[] =>
  Object.entries(STATUS).flatMap(([code, each]) => (each === status ? [code] : []));

/** The body of a lock error, by an example of it. */
const bodyLike = (example: LockErrorBody) => ({
  type: 'object',
  required: Object.keys(example),
  properties: {
    statusCode: { type: 'integer', enum: [example.statusCode] },
    message: { type: 'string', example: example.message },
    error: { type: 'string', example: example.error },
    code: { type: 'string', enum: codesWith(example.statusCode), example: example.code },
  },
});

function answer(
  description: string,
  example: LockErrorBody,
  given: ApiResponseNoStatusOptions = {},
): ApiResponseNoStatusOptions {
  const schema = 'type' in given ? {} : { schema: bodyLike(example) };
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
        options.conflict,
      ),
    ),
    ApiServiceUnavailableResponse(
      answer('No lock can be taken at the moment.', outage.getResponse(), options.unavailable),
    ),
  );
}
