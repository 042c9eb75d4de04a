import { byKey, nameOf } from '../../faults/grants.js';
import type { SimEvent } from '../history.js';
import type { Scenario } from '../scenario.js';
import type { Facts } from './facts.js';

/** Fewer tries show no share. */
const FEWEST = 40;

/** "While the other keys are held for long, at least 95 of 100"; they may have been granted a moment before, so a little less. */
const LEAST_PART = 0.9;

type Ask = SimEvent & { readonly type: 'ask' };

/** A key under which no section runs, and that those who do not wait are refused too often. On one Redis, and without faults. */
export function refusedTries(
  { servers, service }: Scenario,
  { events, done, grants }: Facts,
): readonly string[] {
  if (done.length > 0 || servers.length > 1 || service.restartGuard !== undefined) return [];
  const calls = callsOf(events);
  const granted = byKey(grants);
  return [...new Set(calls.flatMap(({ ask }) => ask.keys))].flatMap((key) => {
    const ofKey = calls.filter(({ ask }) => ask.keys.includes(key));
    // Who waits for this key alone is served before any newcomer.
    const isWanted = ({ ask, to }: Call): boolean =>
      ofKey.some(
        (other) => other.ask.keys.length === 1 && other.ask.waitMs > 0 && meets(other, ask.at, to),
      );
    // With `minHold` it stays taken after its section, too.
    const isHeld = ({ ask, to }: Call): boolean =>
      (granted.get(key) ?? []).some(
        ({ name, grantedAt, endedAt = Infinity, minHoldMs }) =>
          name !== nameOf(ask) &&
          grantedAt <= to &&
          Math.max(endedAt, grantedAt + minHoldMs) >= ask.at - LATE_MS,
      );
    const tries = ofKey.filter(
      (call) =>
        call.ask.waitMs === 0 && call.ask.keys.length === 1 && !isWanted(call) && !isHeld(call),
    );
    if (tries.length < FEWEST) return [];
    const waiters = ofKey.filter(({ ask }) => ask.waitMs > 0 && ask.keys.length > 1).length;
    const got = tries.filter(({ isGranted }) => isGranted).length / tries.length;
    return got >= LEAST_PART
      ? []
      : [
          `tries: ${(100 * got).toFixed(0)} % of ${tries.length} tries at "${key}" got it, under which no section ran, beside ${waiters} calls of several keys`,
        ];
  });
}

/** A release may be on its way so long after the end of its section. */
const LATE_MS = 30;

interface Call {
  readonly ask: Ask;
  to: number;
  isGranted: boolean;
}

const meets = ({ ask, to }: Call, from: number, until: number): boolean =>
  ask.at <= until && to + LATE_MS >= from;

function callsOf(events: readonly SimEvent[]): readonly Call[] {
  const open = new Map<string, Call>();
  const all: Call[] = [];
  for (const event of events) {
    if (event.type === 'ask') {
      const call = { ask: event, to: Infinity, isGranted: false };
      open.set(nameOf(event), call);
      all.push(call);
    } else if ('ask' in event) {
      const call = open.get(nameOf(event));
      if (call === undefined) continue;
      call.to = event.at;
      call.isGranted = event.type === 'granted';
      open.delete(nameOf(event));
    }
  }
  return all;
}
