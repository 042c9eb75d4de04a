import type { RedisLocation } from 'nestjs-holdfast';

/** The result of one attempt. Holdfast does not report single votes: all clients agree here. */
export interface ExecutionStats {
  readonly membershipSize: number;
  readonly quorumSize: number;
  readonly votesFor: ReadonlySet<RedisLocation>;
  readonly votesAgainst: ReadonlyMap<RedisLocation, Error>;
}

/** The result of `release`. There is one attempt: Holdfast is woken while it waits, and does not count tries. */
export interface ExecutionResult {
  readonly attempts: readonly Promise<ExecutionStats>[];
}

/** Another caller holds a resource, or the lock was lost. */
export class ResourceLockedError extends Error {
  override readonly name = 'ResourceLockedError';
}

/** An operation failed. The error of Holdfast is its `cause`. */
export class ExecutionError extends Error {
  override readonly name = 'ExecutionError';
  readonly attempts: readonly Promise<ExecutionStats>[];

  constructor(
    message: string,
    attempts: readonly Promise<ExecutionStats>[],
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.attempts = attempts;
  }
}

export const NO_QUORUM = 'The operation was unable to achieve a quorum during its retry window.';

/** @param error why all clients voted against it; `undefined`: they voted for it */
export function statsOf(
  clients: ReadonlySet<RedisLocation>,
  error: Error | undefined,
): readonly Promise<ExecutionStats>[] {
  const stats: ExecutionStats = {
    membershipSize: clients.size,
    quorumSize: Math.floor(clients.size / 2) + 1,
    votesFor: error === undefined ? new Set(clients) : new Set(),
    votesAgainst:
      error === undefined ? new Map() : new Map([...clients].map((client) => [client, error])),
  };
  return [Promise.resolve(stats)];
}
