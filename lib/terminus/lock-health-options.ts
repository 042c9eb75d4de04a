import { flag, serviceName, timerDuration } from '../options/checks.js';
import { optional, withDefault, type OneSchema, type OptionsOf } from '../options/schema.js';
import type { Kind } from '../options/unknown-option.js';

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

export const LOCK_HEALTH: Kind<typeof HEALTH> = {
  called: 'LockHealthIndicator.check()',
  options: HEALTH,
  elsewhere: { instance: 'Give "name", the name of the lock service.' },
};

/** Options of `LockHealthIndicator.check`. */
export interface LockHealthOptions extends OptionsOf<typeof HEALTH>, OneSchema {}
