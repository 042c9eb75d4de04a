import { Inject, Injectable, Module, type OnModuleDestroy } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';

/** Nest gives the root module 1. */
const BEFORE_ALL_OTHERS = -1;

/**
 * The first hook of a shutdown. Nest calls the hooks of global modules last. Other modules may first wait for a server to drain, as
 * `@nestjs/apollo` does: it waits for requests that wait for a lock.
 */
@Injectable()
export class ShutdownStart implements OnModuleDestroy {
  readonly #listeners: (() => void)[] = [];

  /** Nest destroys modules by their distance from the root module, the nearest first. */
  constructor(@Inject(ModulesContainer) modules: ModulesContainer) {
    for (const module of modules.values())
      if (module.metatype === ShutdownStartModule) module.distance = BEFORE_ALL_OTHERS;
  }

  add(listener: () => void): void {
    this.#listeners.push(listener);
  }

  onModuleDestroy(): void {
    for (const listener of this.#listeners) listener();
  }
}

/** Not global, and apart from `LockModule`, which is initialized before the modules that use it. */
@Module({ providers: [ShutdownStart], exports: [ShutdownStart] })
export class ShutdownStartModule {}
