/** Whether callers heard in time what had become of their request. */
import { nameOf } from './grants.js';
import type { ClientEvent, HistoryEvent } from './history.js';
import { NODE_TIMEOUT_MS } from './plan.js';

/**
 * How much later than its wait a caller may hear, on a machine that is busy: four tries over several masters, with up to 18 requests, one
 * after the other, to nodes that are silent.
 */
export const SLACK_MS = 18 * NODE_TIMEOUT_MS + 1_100;

/** What happened to the client processes of a run. */
export interface Fates {
  readonly killed: ReadonlySet<string>;
  readonly stops: ReadonlyMap<string, readonly (readonly [from: number, to: number])[]>;
}

type Ask = ClientEvent & { readonly type: 'ask' };

const ANSWERS: ReadonlySet<string> = new Set(['granted', 'refused', 'failed', 'once']);

/** Callers who heard nothing, or too late. */
export function lateAnswers(events: readonly HistoryEvent[], fates: Fates): readonly string[] {
  const open = new Map<string, Ask>();
  const violations: string[] = [];
  for (const event of events) {
    if (event.type === 'ask') open.set(nameOf(event), event);
    if (!('ask' in event) || !ANSWERS.has(event.type)) continue;
    const name = nameOf(event);
    const ask = open.get(name);
    if (ask === undefined || !open.delete(name)) continue;
    const tookMs = event.at - ask.at - stoppedMs(ask.client, ask.at, event.at, fates);
    if (tookMs > ask.waitMs + SLACK_MS) {
      violations.push(
        `late: ${name} (${ask.how}) was to hear within ${ask.waitMs} ms, and heard after ${tookMs.toFixed(0)} ms: ${event.type}`,
      );
    }
  }
  for (const [name, { client, how }] of open) {
    if (!fates.killed.has(client)) violations.push(`late: ${name} (${how}) never heard anything`);
  }
  return violations;
}

/** For how long of a time a process was stopped. */
function stoppedMs(client: string, from: number, to: number, { stops }: Fates): number {
  return (stops.get(client) ?? [])
    .map(([stop, goOn]) => Math.max(0, Math.min(goOn, to) - Math.max(stop, from)))
    .reduce((sum, ms) => sum + ms, 0);
}

/** Clients that neither shut down nor were killed. */
export function clientsThatDidNotEnd(
  events: readonly HistoryEvent[],
  { killed }: Fates,
): readonly string[] {
  const left = new Set<string>();
  for (const event of events) {
    if (event.type === 'started') left.add(event.client);
    if (event.type === 'ended') left.delete(event.client);
  }
  return [...left]
    .filter((client) => !killed.has(client))
    .map((client) => `unfinished: client ${client} did not shut down`);
}
