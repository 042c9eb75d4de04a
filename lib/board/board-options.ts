import type { CanActivate, ModuleMetadata, Type } from '@nestjs/common';
import { LockConfigurationError } from '../errors.js';

/** Options of `LockBoardModule.forRoot`. */
export interface LockBoardOptions {
  /** Where the page is, below the global prefix. Default: `locks`. */
  readonly path?: string;
  /** Who may see the page and release locks: they guard the page, its assets and its API alike. */
  readonly guards?: readonly (Type<CanActivate> | CanActivate)[];
  /** Instead of guards: everybody who reaches the application may release locks. For development. */
  readonly unguarded?: boolean;
  /** The `name` of the lock service that is shown. Default: the one without a name. */
  readonly name?: string;
  /** What stands at the top of the page. Default: `Locks`. */
  readonly title?: string;
  /** Who releases, from the request that Express or Fastify has. It is told to the holder, and kept. Default: `board`. */
  readonly user?: (request: unknown) => string;
  /** Modules with what the guards inject. */
  readonly imports?: ModuleMetadata['imports'];
}

/** @throws LockConfigurationError when nobody guards the page and nobody said that this is meant */
export function refuseUnguarded({ guards = [], unguarded = false }: LockBoardOptions): void {
  if (guards.length > 0 && unguarded)
    throw new LockConfigurationError(
      'LockBoardModule: `guards` and `unguarded: true` exclude each other; leave one of them out',
    );
  if (guards.length === 0 && !unguarded)
    throw new LockConfigurationError(
      'LockBoardModule: everybody could release locks; name `guards: [AdminGuard]`, or say `unguarded: true` where nobody else reaches the application',
    );
}
