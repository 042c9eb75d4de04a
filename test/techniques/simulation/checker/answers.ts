import type { SimEvent } from '../history.js';
import type { Scenario } from '../scenario.js';
import { stoodStillMs, type Facts } from './facts.js';

type Ask = SimEvent & { readonly type: 'ask' };

const ANSWERS = new Set(['granted', 'refused', 'failed', 'once', 'nested', 'released']);

/** How much sooner than its wait a caller may be refused: timers come up in slots. */
const EARLY_MS = 10;

/** "A call without `wait` tries this four times" over several masters, after pauses of up to 20, 40 and 80 ms. */
const TRIES_MS = 140;

/** Callers who heard nothing, too late, or were sent away before their time. */
export function answerViolations(scenario: Scenario, facts: Facts): readonly string[] {
  const { events, killed } = facts;
  const slackMs = slackOf(scenario, facts);
  const open = new Map<string, Ask>();
  const closing = new Set<string>();
  const violations: string[] = [];
  for (const event of events) {
    if (event.type === 'closing') closing.add(event.client);
    if (!('ask' in event)) continue;
    const name = `${event.client}#${event.ask}`;
    if (event.type === 'ask') open.set(name, event);
    if (!ANSWERS.has(event.type)) continue;
    const ask = open.get(name);
    if (ask === undefined || !open.delete(name)) continue;
    const stillMs = stoodStillMs(events, ask.client, [ask.at, event.at]);
    const tookMs = event.at - ask.at - stillMs;
    if (tookMs > ask.waitMs + slackMs)
      violations.push(
        `late: ${name} (${ask.how}) was to hear within ${ask.waitMs} ms, and heard after ${tookMs.toFixed(0)} ms: ${event.type}`,
      );
    const clockWasSet = facts.done.some(({ fault }) => fault.kind === 'process-clock-set');
    const waits = !closing.has(ask.client) && !clockWasSet && ask.replaceWaitMs === undefined;
    if (event.type === 'refused' && waits) {
      if (event.at - ask.at < ask.waitMs * 0.99 - EARLY_MS)
        violations.push(
          `early: ${name} (${ask.how}) would have waited ${ask.waitMs} ms, and was refused after ${(event.at - ask.at).toFixed(0)} ms`,
        );
    }
  }
  for (const [name, { client, how }] of open)
    if (!killed.has(client)) violations.push(`late: ${name} (${how}) never heard anything`);
  return violations;
}

/** How much later than its wait a caller may hear: requests to servers that are silent. */
function slackOf({ service, network, servers }: Scenario, { done }: Facts): number {
  const roundTripMs = (2 * (network.latencyUs + network.jitterUs)) / 1_000;
  const triesMs = servers.length > 1 ? TRIES_MS : 0;
  const quietMs = 20 * roundTripMs + 100 + triesMs;
  return done.length === 0 ? quietMs : quietMs + 4 * service.nodeTimeoutMs + 1_000;
}
