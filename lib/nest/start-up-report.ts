import ms from 'ms';
import { NO_OPTIONS } from '../options/acquire-options.js';
import type { Provided } from './methods/bind.js';
import type { LockedMethod } from './methods/locked-method.js';
import { lockedMethodsOf } from './methods/locked-methods-of.js';
import type { NamedLocks } from './methods/service-slot.js';

/** How the methods lock that get their locks from a service: a line for each of them, behind one about calls by hand. */
export function* startUpReport(
  objects: Iterable<Provided>,
  service: NamedLocks,
): Generator<string> {
  const { waitMs, ttlMs } = service.resolved(NO_OPTIONS);
  yield `Calls by hand wait ${shown(waitMs)}, with a TTL of ${shown(ttlMs)}.`;
  for (const { instance } of objects)
    for (const locked of lockedMethodsOf(instance))
      if (locked.slot.serviceName === service.name) yield lineOf(instance, locked, service);
}

function lineOf(instance: object, locked: LockedMethod, service: NamedLocks): string {
  const feature = locked.featureOf(instance);
  const { waitMs, ttlMs } = service.resolved(locked.lockingIn(feature).run);
  const prefix = locked.decorator.isWholeKey === true ? '' : (feature?.keyPrefix ?? '');
  const templates = locked.templates.map(({ source }) => JSON.stringify(prefix + source));
  const key = templates.length > 0 ? templates.join(', ') : 'what its key function returns';
  const wait = waitMs === 0 ? 'does not wait' : `waits ${shown(waitMs)}`;
  return `${locked.name} locks ${key}: ${wait}, TTL ${shown(ttlMs)}; while the key is held, calls ${locked.whenHeld}.`;
}

const shown = (durationMs: number): string =>
  durationMs === Infinity ? 'without a limit' : ms(durationMs);
