import 'reflect-metadata';
import {
  Logger,
  type InjectionToken,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common';
import type { ApplicationConfig, DiscoveryService } from '@nestjs/core';
import { LockConfigurationError } from '../errors.js';
import type { CancelTimer } from '../time/clock.js';
import { restoreFrames } from './handlers/lock.interceptor.js';
import { answerOurselves, givenFilters } from './handlers/own-answers.js';
import { checkKeys, refuseUnfit } from './handlers/start-up-checks.js';
import { checkLeaders, startLeaders } from './leaders/led-methods.js';
import { LockService } from './lock.service.js';
import { bindFeatures, bindLockedMethods, type Provided } from './methods/bind.js';
import type { LockedMethod } from './methods/locked-method.js';
import { lockedMethodsOf, unlockedOverrides } from './methods/locked-methods-of.js';
import { startUpReport } from './start-up-report.js';
import { warnOfUnhandledSignals } from './unhandled-signals.js';

/** What `RouterModule` provides its tree of paths as. */
const ROUTES = 'ROUTES';
const PATHS = /"path":"([^"]*)"/g;

/** Starts a service with its application, and ends it after the last request. */
export class LockLifecycle
  implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown
{
  readonly #logger = new Logger('Holdfast');
  readonly #service: LockService;
  readonly #token: InjectionToken;
  readonly #discovery: DiscoveryService;
  readonly #config: ApplicationConfig;
  #ended: Promise<void> | undefined;
  #deadline: { readonly at: number; readonly cancel: CancelTimer } | undefined;

  constructor(
    service: LockService,
    token: InjectionToken,
    discovery: DiscoveryService,
    config: ApplicationConfig,
  ) {
    this.#service = service;
    this.#token = token;
    this.#discovery = discovery;
    this.#config = config;
    answerOurselves(discovery, config);
    restoreFrames(discovery);
  }

  async onModuleInit(): Promise<void> {
    const service = this.#service;
    const controllers = this.#discovery.getControllers();
    const providers = this.#discovery.getProviders();
    const all = [...providers, ...controllers];
    this.#refuseTwins(
      all.filter(({ token, instance }) => token === this.#token && instance instanceof LockService)
        .length,
    );
    const objects: readonly Provided[] = all.filter(hasObject);
    const warned = new Set<string>();
    const warn = (text: string): void => {
      if (!warned.has(text)) this.#logger.warn(text);
      warned.add(text);
    };
    const routes = new Set(controllers.map(({ instance }) => instance as unknown));
    const prefixes = this.#prefixes();
    const lockedBy = (instance: object): readonly LockedMethod[] =>
      [...lockedMethodsOf(instance)].filter(({ slot }) => slot.serviceName === service.name);
    // What `@UseGuards`, `@UseFilters` and the like name is no provider.
    const enhancers = [...new Set(all.map(({ host }) => host))].flatMap((host) =>
      [...(host?.injectables.values() ?? [])].filter(hasObject),
    );
    const unprovided = [
      ...enhancers.map(({ instance }) => instance),
      ...all.flatMap(({ metatype }) => givenFilters(metatype)),
      ...this.#config.getGlobalFilters(),
    ];
    for (const instance of unprovided)
      for (const locked of lockedBy(instance)) refuseUnfit(instance, locked);
    bindFeatures(objects);
    for (const { instance } of objects) {
      // Nest injects into what it makes itself; what a factory made, or what is a given value, gets its service here.
      bindLockedMethods(instance, service);
      // Behind what it refuses: no warning says to write what is refused.
      for (const locked of lockedBy(instance))
        checkKeys(instance, locked, routes.has(instance) ? prefixes : undefined).forEach(warn);
      for (const { override, locked } of unlockedOverrides(instance)) {
        if (locked.slot.serviceName !== service.name) continue;
        const { called } = locked.decorator;
        warn(
          `${override}, which has ${called}, without a lock of its own. Repeat ${called} there if the override needs the lock.`,
        );
      }
    }
    checkLeaders(providers, controllers, enhancers).forEach(warn);
    if (Logger.isLevelEnabled('debug'))
      for (const line of new Set(startUpReport(objects, service))) this.#logger.debug(line);
    await service.open();
  }

  onApplicationBootstrap(): void {
    warnOfUnhandledSignals(this.#service, this.#config, (text) => {
      this.#logger.warn(text);
    });
  }

  /** Leaders may use whatever the application has: `FirstAndLast` calls it after all hooks of the start. */
  lead(): void {
    startLeaders(this.#discovery.getProviders(), this.#service);
  }

  /** What may stand before the paths of controllers. */
  #prefixes(): readonly string[] {
    const config = this.#config;
    const versioning = config.getVersioning();
    const prefix = versioning !== undefined && 'prefix' in versioning ? versioning.prefix : '';
    const trees = this.#discovery
      .getProviders()
      .filter(({ token }) => typeof token === 'symbol' && token.description === ROUTES)
      .flatMap(({ instance }) =>
        Array.from(JSON.stringify(instance).matchAll(PATHS), ([, path = '']) => path),
      );
    return [config.getGlobalPrefix(), String(prefix), ...trees];
  }

  /**
   * Leaders step down, because what they use may be closed in this phase, and waiting callers fail. Holders continue,
   * because the requests that they work for do. The deadline counts from here, even if the server takes long to close.
   *
   * `FirstAndLast` calls it before all hooks.
   */
  onModuleDestroy(): void {
    this.#service.refuseWaiting();
    const { shutdownTimeoutMs, runtime } = this.#service;
    this.#deadline ??= {
      at: runtime.now().monotonicMs + shutdownTimeoutMs,
      cancel: runtime.setTimer(() => void this.#end(0), shutdownTimeoutMs),
    };
  }

  async onApplicationShutdown(): Promise<void> {
    const { shutdownTimeoutMs, runtime } = this.#service;
    const now = runtime.now().monotonicMs;
    await this.#end(
      this.#deadline === undefined ? shutdownTimeoutMs : Math.max(0, this.#deadline.at - now),
    );
  }

  /** Never rejects: on Nest 11 a hook that does keeps the application from closing. */
  #end(timeoutMs: number): Promise<void> {
    this.#deadline?.cancel();
    this.#ended ??= this.#service.shutdown(timeoutMs).catch((error: unknown) => {
      this.#logger.error('The lock service did not shut down cleanly', error);
    });
    return this.#ended;
  }

  #refuseTwins(count: number): void {
    if (count < 2) return;
    const { name } = this.#service;
    throw new LockConfigurationError(
      `LockModule.forRoot was imported ${String(count)} times ${name === undefined ? 'without a name' : `under the name "${String(name)}"`}. ` +
        `Import it once, in the root module, or give each its own: forRoot({ name: 'jobs', … }). ` +
        'In a test of an application that imports it, replace the service: overrideProvider(LockService).useValue(createTestLocks().locks).',
    );
  }
}

/** Nest creates some for each request only. */
const hasObject = <Wrapper extends { readonly instance: unknown }>(
  wrapper: Wrapper,
): wrapper is Wrapper & { readonly instance: object } =>
  typeof wrapper.instance === 'object' && wrapper.instance !== null;
