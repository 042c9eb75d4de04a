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
import { bindLockedMethods } from './methods/bind.js';
import { bindFeatures } from './methods/bind-features.js';
import { lockedMethodsOf, unlockedOverrides } from './methods/locked-methods-of.js';
import { LockConfigurationError } from '../errors.js';
import { answerOnGateways } from './handlers/gateways.js';
import { answerOnMicroservices, PATTERN } from './handlers/microservices.js';
import { refuseUnheard } from './handlers/refuse-unheard.js';
import { checkRoute } from './handlers/route-check.js';
import { checkLeaders, startLeaders } from './leaders/led-methods.js';
import type { CancelTimer } from '../time/clock.js';
import { LockService } from './lock.service.js';
import type { LockedMethod } from './methods/locked-method.js';
import { MESSAGE } from './handlers/handler-parameters.js';

/** Nest says `any` of the instance. */
interface Wrapper {
  readonly instance: unknown;
}

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
    answerOnGateways(discovery);
    answerOnMicroservices(discovery, config);
  }

  async onModuleInit(): Promise<void> {
    const wrappers = [...this.#discovery.getProviders(), ...this.#discovery.getControllers()];
    this.#refuseTwins(
      wrappers.filter(
        ({ token, instance }) => token === this.#token && instance instanceof LockService,
      ).length,
    );
    this.#checkMethods(wrappers);
    const reported = new Map<string, string>();
    bindFeatures(wrappers);
    for (const { instance } of wrappers as Wrapper[]) {
      if (typeof instance !== 'object' || instance === null) continue;
      // Nest injects into what it makes itself; what a factory made, or what is a given value, gets its service here.
      bindLockedMethods(instance, this.#service);
      const prototype = Object.getPrototypeOf(instance) as object;
      for (const { override, decorator } of unlockedOverrides(prototype))
        reported.set(override, decorator);
    }
    for (const [override, decorator] of reported) {
      this.#logger.warn(
        `${override}, which has ${decorator}, without a lock of its own. Repeat ${decorator} there if the override needs the lock.`,
      );
    }
    checkLeaders(wrappers, this.#service.name);
    await this.#service.open();
  }

  /** Leaders may use whatever the application has by now. */
  onApplicationBootstrap(): void {
    startLeaders(this.#discovery.getProviders(), this.#service);
  }

  /** Looks how decorated methods are called, and compares their keys with what is known of their parameters and routes. */
  #checkMethods(wrappers: readonly { readonly instance: unknown }[]): void {
    const controllers = new Set<unknown>(
      this.#discovery.getControllers().map(({ instance }) => instance as unknown),
    );
    const prefixes = this.#prefixes();
    const doubts = new Set<string>();
    for (const { instance } of wrappers) {
      if (typeof instance !== 'object' || instance === null) continue;
      for (const locked of lockedMethodsOf(instance)) {
        if (locked.slot.serviceName !== this.#service.name) continue;
        refuseUnheard(instance, locked);
        refuseAmbiguous(instance, locked);
        for (const doubt of locked.doubts) doubts.add(doubt);
        if (!controllers.has(instance)) continue;
        for (const doubt of checkRoute(instance, locked, prefixes)) doubts.add(doubt);
      }
    }
    for (const doubt of doubts) this.#logger.warn(doubt);
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
   * `ShutdownStart` calls it before all hooks.
   */
  onModuleDestroy(): void {
    this.#service.stopLeading();
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

/** What `@MessagePattern`, `@EventPattern`, `@GrpcMethod` and `@SubscribeMessage` note on a handler. */
const OF_HANDLERS = [PATTERN, MESSAGE];

/**
 * Refuses keys of message handlers that may mean a parameter as well as a part of the request. Where parameters have decorators this is
 * known when the class is defined; these handlers need none, and are known by decorators that may stand above `@WithLock`.
 *
 * @throws LockConfigurationError
 */
function refuseAmbiguous(instance: object, locked: LockedMethod): void {
  const handler: unknown = Reflect.get(instance, locked.propertyKey);
  if (typeof handler !== 'function') return;
  if (OF_HANDLERS.some((key) => Reflect.hasMetadata(key, handler))) locked.checkHandler();
}
