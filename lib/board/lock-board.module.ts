import { Module, type DynamicModule } from '@nestjs/common';
import { refuseUnguarded, type LockBoardOptions } from './board-options.js';
import { createBoardController } from './board.controller.js';

/**
 * A page inside the application that shows what is held, by whom, since when and who waits, and that releases locks.
 *
 * `LockBoardModule.forRoot({ path: 'locks', guards: [AdminGuard] })`
 */
@Module({})
export class LockBoardModule {
  /** @throws LockConfigurationError without guards, unless `unguarded: true` says that this is meant */
  static forRoot(options: LockBoardOptions): DynamicModule {
    refuseUnguarded(options);
    return {
      module: LockBoardModule,
      imports: options.imports ?? [],
      controllers: [createBoardController(options)],
    };
  }
}
