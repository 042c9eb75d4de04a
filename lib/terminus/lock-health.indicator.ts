import { Inject, Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { HealthIndicatorService, type HealthIndicatorResult } from '@nestjs/terminus';
import { LockConfigurationError } from '../errors.js';
import type { LockService } from '../nest/lock.service.js';
import { getLockServiceToken } from '../nest/tokens.js';
import { flag, serviceName, timerDuration } from '../options/checks.js';
import { optional, withDefault, type OneSchema, type OptionsOf } from '../options/schema.js';
import { checkedOptions, type Kind } from '../options/unknown-option.js';
import type { NodeHealth, StoreHealth } from '../store/lock-store.js';

const HEALTH = {
  /** The `name` of the lock service to check. Default: the service without a name. */
  name: optional<string | symbol | undefined, string | symbol, ''>(serviceName),
  /**
   * The check ends after this time. A server that has not answered by then counts as not reachable.
   *
   * @defaultValue `'800ms'`, because Kubernetes gives a probe one second
   */
  timeout: withDefault(timerDuration({ atLeastMs: 1 }), '800ms'),
  /**
   * Adds `nodes` to the result: the address, latency, clock offset and problem of each server. It never contains credentials. For health
   * endpoints that only operators can reach.
   *
   * @defaultValue `false`
   */
  details: withDefault(flag, false),
};

const LOCK_HEALTH: Kind<typeof HEALTH> = {
  called: 'LockHealthIndicator.check()',
  options: HEALTH,
  elsewhere: { instance: 'Give "name", the name of the lock service.' },
};

/** Options of `LockHealthIndicator.check`. */
export interface LockHealthOptions extends OptionsOf<typeof HEALTH>, OneSchema {}

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
   * - `down`: no lock can be granted now; on a Cluster: not in every slot.
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
    const { name, timeoutMs, details } = checkedOptions(LOCK_HEALTH, options);
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

/** Whether a server grants locks. */
export const isGranting = ({ reachable, problem, quarantinedForMs }: NodeHealth): boolean =>
  reachable && problem === undefined && quarantinedForMs === 0;

/** What clients may know of why servers grant no locks: no address, and nothing that a server said. */
export function healthMessage({ nodes, hasQuorum, warning }: StoreHealth): string | undefined {
  const failing = nodes.filter((node) => !isGranting(node));
  if (hasQuorum && failing.length === 0)
    return warning === undefined ? undefined : `Locks are granted to this process only. ${WHY}`;
  const outcome = hasQuorum ? 'Locks are granted.' : 'No lock can be granted now.';
  const [first] = failing;
  const reason =
    nodes.length === 1 && first !== undefined
      ? `The lock store is ${stateOf(first)}.`
      : `${String(failing.length)} of ${String(nodes.length)} nodes grant no locks (${statesOf(failing)}).`;
  return `${outcome} ${reason} ${WHY}`;
}

const WHY = 'The log of the application says why.';

const stateOf = ({ reachable, quarantinedForMs }: NodeHealth): string => {
  if (!reachable) return 'not reachable';
  return quarantinedForMs > 0 ? 'in quarantine' : 'refusing to grant locks';
};

/** `1 not reachable, 2 in quarantine` */
function statesOf(nodes: readonly NodeHealth[]): string {
  const counts = new Map<string, number>();
  for (const state of nodes.map(stateOf)) counts.set(state, (counts.get(state) ?? 0) + 1);
  return [...counts].map(([state, count]) => `${String(count)} ${state}`).join(', ');
}
