import type { SimEvent } from '../history.js';
import type { Scenario } from '../scenario.js';
import type { Facts } from './facts.js';

/** Until a process that has begun to wait for the first time stands in line: it connects its inbox first. */
const TRIPS_TO_THE_LINE = 16;

type Ask = SimEvent & { readonly type: 'ask' };

/**
 * "Who comes while a writer waits stands behind it, and is refused if it does not wait": readers who were let in although somebody whom
 * they keep out had waited before they came. On one Redis, of single keys, and without faults.
 */
export function starvationViolations(
  scenario: Scenario,
  { events, done }: Facts,
): readonly string[] {
  if (scenario.servers.length > 1 || done.length > 0 || !isPlain(scenario)) return [];
  const { latencyUs, jitterUs } = scenario.network;
  const slackMs = (TRIPS_TO_THE_LINE * (latencyUs + jitterUs)) / 1_000 + 5;
  const open = new Map<string, Ask>();
  /** Of the readers of a process that wait for a key: when the first of them came. All of them are let in with it. */
  const lines = new Map<string, { since: number; waiting: number }>();
  /** When a process last had a key, or gave it back: who waits there stands in line anew. */
  const metAt = new Map<string, number>();
  const asked = new Map<string, Ask>();
  const violations: string[] = [];
  for (const event of events) {
    if (!('ask' in event)) continue;
    const name = `${event.client}#${event.ask}`;
    if (event.type === 'ask') {
      open.set(name, event);
      if (event.mode === 'shared' && event.waitMs > 0) {
        const line = lines.get(placeOf(event)) ?? { since: event.at, waiting: 0 };
        lines.set(placeOf(event), { ...line, waiting: line.waiting + 1 });
      }
      continue;
    }
    const ask = open.get(name);
    if (ask !== undefined) {
      open.delete(name);
      const line = lines.get(placeOf(ask));
      if (event.type === 'granted' && ask.mode === 'shared') {
        const before =
          Math.min(ask.at, ask.waitMs > 0 ? (line?.since ?? ask.at) : ask.at) - slackMs;
        const starved = [...open.values()].find(
          (other) =>
            other.waitMs > 0 &&
            other.mode !== 'shared' &&
            other.keys[0] === ask.keys[0] &&
            Math.max(other.at, metAt.get(placeOf(other)) ?? 0) < before,
        );
        if (starved !== undefined)
          violations.push(
            `starved: ${name} joined those who read "${ask.keys[0]!}", and ${starved.client}#${starved.ask} had waited since ${starved.at.toFixed(1)}, ${(ask.at - starved.at).toFixed(1)} ms longer`,
          );
      }
      if (line !== undefined && ask.mode === 'shared' && ask.waitMs > 0) {
        line.waiting -= 1;
        if (line.waiting === 0) lines.delete(placeOf(ask));
      }
      asked.set(name, ask);
    }
    const mine = asked.get(name);
    if (mine !== undefined) metAt.set(placeOf(mine), event.at);
  }
  return violations;
}

/** The line of a process at a key, of whatever mode. */
const placeOf = ({ client, keys }: Ask): string => `${client} ${keys[0]!}`;

const isPlain = ({ processes, service }: Scenario): boolean =>
  service.restartGuard === undefined &&
  processes.every(({ callers }) =>
    callers.every(({ operations }) =>
      operations.every(
        ({ keys, inner, blocksMs }) =>
          keys.length === 1 && inner === undefined && blocksMs === undefined,
      ),
    ),
  );
