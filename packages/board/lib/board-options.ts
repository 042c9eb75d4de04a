import type { CanActivate, ModuleMetadata, Type } from '@nestjs/common';
import { LockConfigurationError } from 'nestjs-holdfast';

/** Options of `LockBoardModule.forRoot`. */
export interface LockBoardOptions {
  /** The path of the page, below the global prefix of the application. Default: `locks`. */
  readonly path?: string;
  /**
   * The guards that decide who may see the page and release locks: classes, as in `@UseGuards()`, or objects. They
   * guard the page, its files, its data and its actions. What their constructors inject comes from `imports` and from
   * global modules.
   */
  readonly guards?: readonly (Type<CanActivate> | CanActivate)[];
  /**
   * Allows a page without guards: every client that reaches the application may release locks. For development.
   * Default: `false`.
   */
  readonly unguarded?: boolean;
  /**
   * The host names under which browsers open the page, without scheme and port: `['ops.example.com']`. A request for
   * another host gets 403. A page of an attacker whose name leads to this application (DNS rebinding) is one. Default:
   * any host with `guards`; with `unguarded`, `localhost` and IP addresses.
   */
  readonly hosts?: readonly string[];
  /** The `name` of the lock service that the page shows. Default: the service without a name. */
  readonly name?: string | symbol;
  /** The title of the page. Default: `Locks`. */
  readonly title?: string;
  /** Modules with the providers that the guards inject. */
  readonly imports?: ModuleMetadata['imports'];
  /**
   * Returns the name of the operator, from the request of Express or Fastify: `(request) => request.user.email`.
   * Holders are notified of it, and the audit log keeps its first 200 characters. Default: `board`.
   */
  user?(request: unknown): string | undefined | Promise<string | undefined>;
}

/** Injects the options of one page. */
export const LOCK_BOARD_OPTIONS = Symbol('nestjs-holdfast:board-options');

/** A path of one or several segments without parameters. */
const PATH = /^\/?[\w.~-]+(\/[\w.~-]+)*\/?$/;

const HOST = /^([\w.-]+|\[[\da-f:.]+\])$/i;

/**
 * @throws LockConfigurationError for a page without guards, unless `unguarded` is true, and for a path or a host that is
 *   none
 */
export function checkBoardOptions(options: LockBoardOptions): void {
  if (typeof options !== 'object' || (options as unknown) === null)
    throw new LockConfigurationError(
      'LockBoardModule.forRoot needs its options as an object: forRoot({ guards: [AdminGuard] }).',
    );
  const { path = 'locks', guards = [], unguarded = false, hosts } = options;
  if (hosts !== undefined && (hosts.length === 0 || !hosts.every((host) => HOST.test(host))))
    throw new LockConfigurationError(
      "LockBoardModule: `hosts` are host names without scheme and port, such as hosts: ['ops.example.com'].",
    );
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
