import { Inject, Module, type DynamicModule, type NestModule, type Type } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { getLockServiceToken } from 'nestjs-holdfast';
import { LockAdmin, LockAdminModule } from 'nestjs-holdfast/admin';
import { BoardData, type HealthSource } from './board-data.js';
import { checkBoardOptions, LOCK_BOARD_OPTIONS, type LockBoardOptions } from './board-options.js';
import { systemClock } from './clock.js';
import { boardControllerOf, serveSlash } from './board.controller.js';

const BOARD_CONTROLLER = Symbol('nestjs-holdfast:board-controller');

/**
 * A page inside the application. It shows which locks are held and waited for, by which processes and since when, and
 * it releases locks. `LockModule.forRoot` must be imported somewhere in the application.
 *
 * @example
 * ```ts
 * import { type CanActivate, Module } from '@nestjs/common';
 * import { LockBoardModule } from '@nestjs-holdfast/board';
 *
 * class AdminGuard implements CanActivate {
 *   canActivate(): boolean {
 *     return false; // your rule
 *   }
 * }
 *
 * @Module({ imports: [LockBoardModule.forRoot({ path: 'locks', guards: [AdminGuard] })] })
 * class OperationsModule {}
 * ```
 */
@Module({})
export class LockBoardModule implements NestModule {
  readonly #host: HttpAdapterHost;
  readonly #controller: Type;

  constructor(
    @Inject(HttpAdapterHost) host: HttpAdapterHost,
    @Inject(BOARD_CONTROLLER) controller: Type,
  ) {
    this.#host = host;
    this.#controller = controller;
  }

  /** @throws LockConfigurationError without guards, unless `unguarded` is true */
  static forRoot(options: LockBoardOptions): DynamicModule {
    checkBoardOptions(options);
    const { name, imports = [] } = options;
    const controller = boardControllerOf(options);
    return {
      module: LockBoardModule,
      imports: [...imports, LockAdminModule.forRoot(name === undefined ? {} : { name })],
      controllers: [controller],
      providers: [
        { provide: LOCK_BOARD_OPTIONS, useValue: options },
        { provide: BOARD_CONTROLLER, useValue: controller },
        {
          provide: BoardData,
          useFactory: (admin: LockAdmin, locks: HealthSource) =>
            new BoardData(admin, locks, systemClock),
          inject: [LockAdmin, getLockServiceToken(name)],
        },
      ],
    };
  }

  /** Nest calls it when it knows its HTTP adapter, and no route yet. */
  configure(): void {
    if (this.#host.httpAdapter.getType() === 'fastify') serveSlash(this.#controller);
  }
}
