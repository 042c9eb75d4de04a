import { Module, type DynamicModule } from '@nestjs/common';
import type { LockService } from '../nest/lock.service.js';
import { getLockServiceToken } from '../nest/tokens.js';
import { LockAdmin } from './lock-admin.js';

/** Options of `LockAdminModule.forRoot`. */
export interface LockAdminModuleOptions {
  /** The `name` of the lock service to administer. Default: the service without a name. */
  readonly name?: string | symbol;
}

/**
 * Provides `LockAdmin` to the modules that import it. `LockModule.forRoot` must be imported somewhere in the
 * application.
 *
 * @example
 * ```ts
 * import { Module } from '@nestjs/common';
 * import { LockAdminModule } from 'nestjs-holdfast/admin';
 *
 * @Module({ imports: [LockAdminModule.forRoot()] })
 * class OperationsModule {}
 * ```
 */
@Module({})
export class LockAdminModule {
  static forRoot({ name }: LockAdminModuleOptions = {}): DynamicModule {
    return {
      module: LockAdminModule,
      providers: [
        {
          provide: LockAdmin,
          useFactory: (service: LockService) => new LockAdmin(service),
          inject: [getLockServiceToken(name)],
        },
      ],
      exports: [LockAdmin],
    };
  }
}
