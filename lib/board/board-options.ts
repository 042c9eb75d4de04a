import type { CanActivate, ModuleMetadata, Type } from '@nestjs/common';
import { LockConfigurationError } from '../errors.js';

/** Options of `LockBoardModule.forRoot`. */
export interface LockBoardOptions {
  /** Where the page is, below the global prefix of the application. Default: `locks`. */
  readonly path?: string;
  /**
   * Who may see the page and release locks: classes, as in `@UseGuards()`, or objects. They guard the page, its files, its data and its
   * actions alike. What their constructors inject comes from `imports` and from global modules.
   */
  readonly guards?: readonly (Type<CanActivate> | CanActivate)[];
  /** Instead of guards: everybody who reaches the application may release locks. For development. Default: `false`. */
  readonly unguarded?: boolean;
  /** The `name` of the lock service that is shown. Default: the one without a name. */
  readonly name?: string | symbol;
  /** What stands at the top of the page. Default: `Locks`. */
  readonly title?: string;
  /** Modules with what the guards inject. */
  readonly imports?: ModuleMetadata['imports'];
  /**
   * Who acts, from the request that Express or Fastify has: `(request) => request.user.email`. Holders are told, and the audit log keeps
   * the first 200 characters. Default: `board`.
   */
  user?(request: unknown): string | undefined | Promise<string | undefined>;
}

/** Injects the options of one page. */
export const LOCK_BOARD_OPTIONS = Symbol('nestjs-holdfast:board-options');

/** A path of one or several segments without parameters. */
const PATH = /^\/?[\w.~-]+(\/[\w.~-]+)*\/?$/;

/** @throws LockConfigurationError when nobody guards the page and nobody said that this is meant, and for a path that is none */
export function checkBoardOptions({
  path = 'locks',
  guards = [],
  unguarded = false,
}: LockBoardOptions): void {
  if (!PATH.test(path))
    throw new LockConfigurationError(
      `LockBoardModule: the path "${path}" is no place for a page; give segments of letters and digits, such as path: 'ops/locks'.`,
    );
  if (guards.length > 0 && unguarded)
    throw new LockConfigurationError(
      'LockBoardModule: `guards` and `unguarded: true` exclude each other; leave one of them out.',
    );
  if (guards.length === 0 && !unguarded)
    throw new LockConfigurationError(
      'LockBoardModule: every client could release locks. Name the guards, `guards: [AdminGuard]`, or give `unguarded: true` where only operators can reach the application.',
    );
}
