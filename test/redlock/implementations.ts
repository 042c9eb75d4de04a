import * as ours from '@nestjs-holdfast/redlock';
import * as theirs from '../claims/interop/redlock.js';

/** As much of both as is compared. */
export interface Implementation {
  readonly Redlock: typeof ours.Redlock;
  readonly ExecutionError: typeof ours.ExecutionError;
  readonly ResourceLockedError: typeof ours.ResourceLockedError;
}

export const NODE_REDLOCK = theirs as unknown as Implementation;

export const IMPLEMENTATIONS: readonly (readonly [string, Implementation])[] = [
  ['node-redlock', NODE_REDLOCK],
  ['@nestjs-holdfast/redlock', ours],
];

export const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'no failure',
    (error: unknown) => error,
  );
