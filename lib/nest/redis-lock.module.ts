import {
  ConfigurableModuleBuilder,
  Module,
  type DynamicModule,
  Scope,
  type OnModuleInit,
  type Provider,
  Inject,
  Injectable,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common';
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
import { LockLifecycle } from './lock-lifecycle.js';
import { LockService } from './lock.service.js';
import { reached } from './methods/bind.js';
import { LOCK_FEATURE, LockFeature } from './methods/lock-feature.js';
import type { LockFeatureOptions } from './methods/method-options.js';
import {
  REGISTRATION,
  type LockModuleOptions,
  type LockOptionsFactory,
  type RegistrationOptions,
} from '../options/lock-module-options.js';
import { refuseNoOptions } from '../options/resolve-options.js';
import { resolve } from '../options/schema.js';
import { getLockServiceToken } from './tokens.js';
import { LockConfigurationError } from '../errors.js';

/** Nest gives the root module 1. */
const BEFORE_ALL_OTHERS = -1;

/**
 * The last hook of a start, and the first of a shutdown. Nest calls the shutdown hooks of global modules last. Other modules may first wait
 * for a server to drain, as `@nestjs/apollo` does: it waits for requests that wait for a lock.
 */
@Injectable()
class FirstAndLast implements OnApplicationBootstrap, OnModuleDestroy {
  readonly lifecycles = new Set<LockLifecycle>();

  /** Nest starts modules by their distance from the root module, the nearest last, and destroys them in reverse. */
  constructor(@Inject(ModulesContainer) modules: ModulesContainer) {
    for (const module of modules.values())
      if (module.metatype === FirstAndLastModule) module.distance = BEFORE_ALL_OTHERS;
  }

  /** A leader that cannot stand makes the start fail: then none leads. */
  onApplicationBootstrap(): void {
    try {
      for (const lifecycle of this.lifecycles) lifecycle.lead();
    } catch (error) {
      this.onModuleDestroy();
      throw error;
    }
  }

  onModuleDestroy(): void {
    for (const lifecycle of this.lifecycles) lifecycle.onModuleDestroy();
  }
}

/** Not global, and apart from `LockModule`, which is initialized before the modules that use it. */
@Module({ providers: [FirstAndLast], exports: [FirstAndLast] })
class FirstAndLastModule {}

const SCOPE_CHECK = Symbol('holdfast:scope-check');

/**
 * Refuses a service that Nest would create for each request: each would have connections of its own, which are never
 * closed. Such a service has no lifecycle that could detect this, because nothing of it is created at the start.
 */
const scopeCheckOf = (token: ReturnType<typeof getLockServiceToken>): Provider => ({
  provide: SCOPE_CHECK,
  inject: [ModuleRef],
  useFactory: (modules: ModuleRef): OnModuleInit => ({
    onModuleInit: () => {
      if (modules.introspect(token).scope !== Scope.REQUEST) return;
      throw new LockConfigurationError(
        'The options of LockModule depend on the request, through "inject" or a class that does: each request would open connections of its ' +
          'own. Let the options depend on what exists when the application starts. Where locks differ from tenant to tenant, put the ' +
          "tenant into the key: @WithLock('<user.tenant>:order:<id>').",
      );
    },
  }),
});

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
@Module({ imports: [DiscoveryModule, FirstAndLastModule] })
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
   * the options of a method go before them. Calls of `LockService` and `@Leader` are not affected.
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
          hooks: FirstAndLast,
        ) => {
          // Nest adds those of the application later, so this one is around them: it sees with what a call fails in the end.
          config.addGlobalInterceptor(new LockErrorInterceptor());
          if (!(service instanceof LockService)) return null;
          await refuseLazy(service, modules);
          const lifecycle = new LockLifecycle(service, token, discovery, config);
          hooks.lifecycles.add(lifecycle);
          return lifecycle;
        },
        inject: [token, DiscoveryService, ApplicationConfig, ModulesContainer, FirstAndLast],
      },
      scopeCheckOf(token),
      { provide: APP_FILTER, useClass: LockErrorFilter },
    ],
    exports: [token],
  };
}

/**
 * Refuses a service that `LazyModuleLoader` makes: Nest calls no lifecycle hooks of such modules, so its connections
 * would never be closed.
 *
 * @throws LockConfigurationError
 */
async function refuseLazy(service: LockService, modules: ModulesContainer): Promise<void> {
  const all = [...modules.values()];
  const host = all.find(({ providers }) =>
    [...providers.values()].some(({ instance }) => instance === service),
  );
  // The first module is Nest's own, with the providers of the core (a minifier changes its name); the next one is the root.
  const root = all.find(({ providers }) => !providers.has(ModulesContainer));
  if (
    host === undefined ||
    root === undefined ||
    [...reached([root], ({ imports }) => imports)].includes(host)
  )
    return;
  await service.shutdown(0);
  throw new LockConfigurationError(
    'LockModule.forRoot was loaded lazily, by LazyModuleLoader: Nest calls no lifecycle hooks of such modules, so its ' +
      'connections would never be closed. Import it in the root module. Modules that are loaded lazily use its LockService, and may import LockModule.forFeature.',
  );
}
