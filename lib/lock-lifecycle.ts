import {
  Logger,
  type BeforeApplicationShutdown,
  type InjectionToken,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import { bindLockedMethods } from './decorators/bind.js';
import { unlockedOverrides } from './decorators/locked-methods-of.js';
import { LockConfigurationError } from './errors.js';
import { LockService } from './lock.service.js';

/** Starts a service with its application, and ends it after the last request. */
export class LockLifecycle
  implements OnModuleInit, BeforeApplicationShutdown, OnApplicationShutdown
{
  readonly #logger = new Logger('Holdfast');
  readonly #service: LockService;
  readonly #token: InjectionToken;
  readonly #discovery: DiscoveryService;
  #ended: Promise<void> | undefined;
  #deadline: { readonly at: number; readonly timer: NodeJS.Timeout } | undefined;

  constructor(service: LockService, token: InjectionToken, discovery: DiscoveryService) {
    this.#service = service;
    this.#token = token;
    this.#discovery = discovery;
  }

  async onModuleInit(): Promise<void> {
    const wrappers = [...this.#discovery.getProviders(), ...this.#discovery.getControllers()];
    this.#refuseTwins(
      wrappers.filter(
        ({ token, instance }) => token === this.#token && instance instanceof LockService,
      ).length,
    );
    const reported = new Map<string, string>();
    for (const { instance } of wrappers as { instance: unknown }[]) {
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
    await this.#service.open();
  }

  /** Waiting callers fail now; holders go on, as the requests that they work for do. The deadline runs from here, whatever keeps the server from closing. */
  beforeApplicationShutdown(): void {
    this.#service.refuseWaiting();
    const { shutdownTimeoutMs } = this.#service;
    this.#deadline ??= {
      at: performance.now() + shutdownTimeoutMs,
      timer: setTimeout(() => void this.#end(0), shutdownTimeoutMs),
    };
  }

  async onApplicationShutdown(): Promise<void> {
    const at = this.#deadline?.at ?? performance.now() + this.#service.shutdownTimeoutMs;
    await this.#end(Math.max(0, at - performance.now()));
  }

  /** Never rejects: on Nest 11 a hook that does keeps the application from closing. */
  #end(timeoutMs: number): Promise<void> {
    clearTimeout(this.#deadline?.timer);
    this.#ended ??= this.#service.shutdown(timeoutMs).catch((error: unknown) => {
      this.#logger.error('The lock service did not shut down cleanly', error);
    });
    return this.#ended;
  }

  #refuseTwins(count: number): void {
    if (count < 2) return;
    const { name } = this.#service;
    throw new LockConfigurationError(
      `RedisLockModule.forRoot was imported ${String(count)} times ${name === undefined ? 'without a name' : `under the name "${String(name)}"`}. ` +
        `Import it once, in the root module, or give each its own: forRoot({ name: 'jobs', … }). ` +
        'In a test of an application that imports it, replace the service: overrideProvider(LockService).useValue(createTestLocks().locks).',
    );
  }
}
