import { Inject, Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { HealthIndicatorService, type HealthIndicatorResult } from '@nestjs/terminus';
import { LockConfigurationError } from '../errors.js';
import type { LockService } from '../nest/lock.service.js';
import { getLockServiceToken } from '../nest/tokens.js';
import { healthMessage, isGranting } from './health-message.js';
import { resolveHealthOptions, type LockHealthOptions } from './lock-health-options.js';

type Facts = Record<string, unknown>;

/** What both versions of Terminus have in common. */
interface Session<Key extends string> {
  up(facts: Facts): HealthIndicatorResult<Key>;
  down(facts: Facts): HealthIndicatorResult<Key>;
  /** From Terminus 12 on. */
  degraded?(facts: Facts): HealthIndicatorResult<Key>;
}

/**
 * Tells `@nestjs/terminus` whether locks can be granted: `() => this.locks.check('locks')`. Provide it in the module of the health
 * controller, beside `imports: [TerminusModule]`.
 */
@Injectable()
export class LockHealthIndicator {
  readonly #indicators: HealthIndicatorService;
  readonly #modules: ModuleRef;

  constructor(
    @Inject(HealthIndicatorService) indicators: HealthIndicatorService,
    @Inject(ModuleRef) modules: ModuleRef,
  ) {
    this.#indicators = indicators;
    this.#modules = modules;
  }

  /**
   * Does what a grant does on each server, rights included, with a key that no caller can lock. Checks that run at the same time share one
   * attempt.
   *
   * - `up`: every server grants locks.
   * - `degraded` (with Terminus 11 `up`, with a message): a minority of several masters grants none. The HTTP status stays 200.
   * - `down`: no lock can be granted now. Of a Cluster: not in every slot.
   *
   * The result contains a `message` without addresses, `nodesGranting` and `nodesTotal`.
   *
   * @param key names the indicator in the result
   * @throws LockConfigurationError for options that are wrong, and for a lock service that does not exist
   */
  async check<const Key extends string>(
    key: Key,
    options: LockHealthOptions = {},
  ): Promise<HealthIndicatorResult<Key>> {
    const { name, timeoutMs, details } = resolveHealthOptions(options);
    const session: Session<Key> = this.#indicators.check(key);
    const health = await this.#serviceNamed(name).healthWithin(timeoutMs);
    const { nodes, hasQuorum } = health;
    const message = healthMessage(health);
    const facts = {
      ...(message !== undefined && { message }),
      nodesGranting: nodes.filter(isGranting).length,
      nodesTotal: nodes.length,
      ...(details && { nodes }),
    };
    if (!hasQuorum) return session.down(facts);
    if (message === undefined) return session.up(facts);
    return session.degraded?.(facts) ?? session.up(facts);
  }

  #serviceNamed(name: string | symbol | undefined): LockService {
    try {
      return this.#modules.get<LockService>(getLockServiceToken(name), { strict: false });
    } catch {
      const called = name === undefined ? 'without a name' : `named "${String(name)}"`;
      throw new LockConfigurationError(
        `LockHealthIndicator.check() found no lock service ${called}. Import LockModule.forRoot into the root module, or give "name".`,
      );
    }
  }
}
