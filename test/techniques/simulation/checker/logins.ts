import { nameOf } from '../../faults/grants.js';
import type { SimEvent } from '../history.js';
import type { Scenario } from '../scenario.js';
import { longestTtlMs, type DoneFault } from './losses.js';
import type { Facts } from './facts.js';

/** Between two tries to connect, at the most, and to log in. */
const CONNECTED_MS = 1_000;

const SLACK_MS = 50;

type Ask = SimEvent & { readonly type: 'ask' };

/**
 * A password that changes, and nothing else that goes wrong: which calls fail, and how soon; and that renewals continue when the password is
 * right again.
 */
export function loginViolations(scenario: Scenario, facts: Facts): readonly string[] {
  const { done, events, grants } = facts;
  if (done.length === 0 || done.some(({ fault }) => fault.kind !== 'password-changed')) return [];
  if (scenario.servers.length > 1) return [];
  const { latencyUs, jitterUs } = scenario.network;
  // A renewal that failed is tried again after a quarter of the TTL.
  const ttlMs = longestTtlMs(scenario);
  const lateMs = scenario.service.nodeTimeoutMs + (16 * (latencyUs + jitterUs)) / 1_000 + SLACK_MS;
  return [
    ...wrongAnswers(events, done, lateMs),
    ...grants.flatMap(({ name, promised }) => {
      const lost = events.find((event) => event.type === 'lost' && nameOf(event) === name);
      if (lost?.type !== 'lost' || lost.reason !== 'store-unavailable') return [];
      // The last renewal that had a reply was before the password changed.
      const before = done.filter(({ at }) => at < lost.at);
      const healedAt = Math.max(...before.map((each) => each.healedAt));
      return promised - healedAt > CONNECTED_MS + lateMs + ttlMs / 4
        ? [
            `login: ${name} was lost ${(lost.at - healedAt).toFixed(0)} ms after the password was right again`,
          ]
        : [];
    }),
  ];
}

function wrongAnswers(
  events: readonly SimEvent[],
  done: readonly DoneFault[],
  lateMs: number,
): readonly string[] {
  const asks = new Map<string, Ask>();
  return events.flatMap((event) => {
    if (event.type === 'ask') asks.set(nameOf(event), event);
    if (!('ask' in event)) return [];
    const ask = asks.get(nameOf(event));
    if (ask === undefined || event.type === 'ask') return [];
    asks.delete(nameOf(event));
    // It has asked when the password was wrong, and had not become right yet.
    const during = done.find(({ at, healedAt }) => ask.at > at + lateMs && ask.at < healedAt);
    const tookMs = event.at - ask.at;
    // "Calls with `wait` fail at once, too": when the next login is refused, or that after it.
    const mostMs = 2 * lateMs + CONNECTED_MS;
    const isLate = during !== undefined && during.healedAt - ask.at > mostMs && tookMs > mostMs;
    if (isLate && event.type !== 'released')
      return [
        `login: ${nameOf(event)} asked while the password was wrong, and heard after ${tookMs.toFixed(0)} ms: ${event.type}`,
      ];
    const isWell = done.every(
      ({ at, healedAt }) => at > event.at || healedAt + CONNECTED_MS + lateMs < ask.at,
    );
    if (isWell && event.type === 'failed' && event.error === 'LockStoreUnavailableError')
      return [`login: ${nameOf(event)} failed after the password was right again`];
    return [];
  });
}
