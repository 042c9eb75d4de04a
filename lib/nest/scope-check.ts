import { Scope, type OnModuleInit, type Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import { LockConfigurationError } from '../errors.js';

type Token = Type | string | symbol;

/**
 * Refuses a service that Nest would create for each request: each would have connections of its own, which are never
 * closed. Such a service has no lifecycle that could detect this, because nothing of it is created at the start.
 */
export class ScopeCheck implements OnModuleInit {
  readonly #modules: ModuleRef;
  readonly #token: Token;

  constructor(modules: ModuleRef, token: Token) {
    this.#modules = modules;
    this.#token = token;
  }

  onModuleInit(): void {
    if (this.#modules.introspect(this.#token).scope !== Scope.REQUEST) return;
    throw new LockConfigurationError(
      'The options of LockModule depend on the request, through "inject" or a class that does: each request would open connections of its ' +
        'own. Let the options depend on what exists when the application starts. Where locks differ from tenant to tenant, put the ' +
        "tenant into the key: @WithLock('<user.tenant>:order:<id>').",
    );
  }
}
