import { ConfigurableModuleBuilder, Module, type DynamicModule } from '@nestjs/common';
import {
  APP_FILTER,
  ApplicationConfig,
  DiscoveryModule,
  DiscoveryService,
  ModuleRef,
  ModulesContainer,
} from '@nestjs/core';
import { LockErrorFilter } from './handlers/lock-error.filter.js';
import { LockErrorInterceptor } from './handlers/lock-error.interceptor.js';
import { LockHandlerRunner } from './handlers/lock-handler.runner.js';
import { refuseLazy } from './lazy-check.js';
import { LockLifecycle } from './lock-lifecycle.js';
import { LockService } from './lock.service.js';
import { LOCK_FEATURE, LockFeature } from './methods/lock-feature.js';
import type { LockFeatureOptions } from './methods/method-options.js';
import { ScopeCheck } from './scope-check.js';
import { ShutdownStart, ShutdownStartModule } from './shutdown-start.js';
import {
  REGISTRATION,
  type LockModuleOptions,
  type LockOptionsFactory,
  type RegistrationOptions,
} from '../options/lock-module-options.js';
import { refuseNoOptions } from '../options/resolve-options.js';
import { resolve } from '../options/schema.js';
import { getLockServiceToken } from './tokens.js';

const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } =
  new ConfigurableModuleBuilder<LockModuleOptions>()
    .setClassMethodName('forRoot')
    .setFactoryMethodName('createLockOptions' satisfies keyof LockOptionsFactory)
    .setExtras<RegistrationOptions>({ isGlobal: true, name: undefined }, complete)
    .build();

type Registration<Method extends 'forRoot' | 'forRootAsync'> = Parameters<
  (typeof ConfigurableModuleClass)[Method]
>[0];

/**
 * Distributed locks for a Nest application: provides a `LockService`, and makes `@WithLock` work.
 *
 * Use `forRoot({ redis: 'redis://localhost:6379' })`, `forRoot({ store: 'memory' })`, or
 * `forRootAsync({ imports, inject, useFactory })` (also `useClass`, `useExisting` with a `LockOptionsFactory`).
 *
 * The application does not start with wrong options, nor with options that depend on the request: each request would
 * open connections of its own.
 */
@Module({ imports: [DiscoveryModule, ShutdownStartModule] })
export class RedisLockModule extends ConfigurableModuleClass {
  static override forRoot(options: Registration<'forRoot'>): DynamicModule {
    refuseNoOptions(options);
    return super.forRoot(options);
  }

  static override forRootAsync(options: Registration<'forRootAsync'>): DynamicModule {
    refuseNoOptions(options);
    return super.forRootAsync(options);
  }

  /**
   * Sets defaults for the decorated methods of the module that imports it. They go before the options of `forRoot`, and
   * the options of a method go before them. Calls of `LockService` are not affected.
   *
   * @throws LockConfigurationError for options that are wrong
   * @example
   * ```ts
   * import { Module } from '@nestjs/common';
   * import { LockModule } from 'nestjs-holdfast';
   *
   * @Module({ imports: [LockModule.forFeature({ keyPrefix: 'orders:', ttl: '1m', wait: '5s' })] })
   * class OrdersModule {}
   * ```
   */
  static forFeature(options: LockFeatureOptions): DynamicModule {
    const feature = { provide: LOCK_FEATURE, useValue: new LockFeature(options) };
    return { module: LockFeatureModule, providers: [feature], exports: [LOCK_FEATURE] };
  }
}

@Module({})
class LockFeatureModule {}

/** The same class under its short name. */
export { RedisLockModule as LockModule };

function complete(definition: DynamicModule, extras: RegistrationOptions): DynamicModule {
  const { isGlobal, name } = resolve(REGISTRATION, extras);
  const token = getLockServiceToken(name);
  return {
    ...definition,
    global: isGlobal,
    providers: [
      ...(definition.providers ?? []),
      {
        provide: token,
        useFactory: (options: LockModuleOptions) => new LockService(options, { name }),
        inject: [MODULE_OPTIONS_TOKEN],
      },
      {
        provide: LockLifecycle,
        // A test may have injected a stand-in of its own instead of the service. Such a stand-in has no lifecycle.
        useFactory: async (
          service: unknown,
          discovery: DiscoveryService,
          config: ApplicationConfig,
          modules: ModulesContainer,
          start: ShutdownStart,
        ) => {
          // Nest adds those of the application later, so this one is around them: it sees with what a call fails in the end.
          config.addGlobalInterceptor(new LockErrorInterceptor());
          if (!(service instanceof LockService)) return null;
          await refuseLazy(service, modules);
          const lifecycle = new LockLifecycle(service, token, discovery, config);
          start.add(() => {
            lifecycle.onModuleDestroy();
          });
          return lifecycle;
        },
        inject: [token, DiscoveryService, ApplicationConfig, ModulesContainer, ShutdownStart],
      },
      {
        provide: ScopeCheck,
        useFactory: (modules: ModuleRef) => new ScopeCheck(modules, token),
        inject: [ModuleRef],
      },
      LockHandlerRunner,
      { provide: APP_FILTER, useClass: LockErrorFilter },
    ],
    exports: [token, LockHandlerRunner],
  };
}
