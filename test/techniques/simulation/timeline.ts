import type { SimEvent } from './history.js';
import type { Played } from './play.js';
import type { Scenario } from './scenario.js';

/** What happened, one line each, for a human. */
export function timelineOf({ scenario, events }: Played): string {
  return [...headOf(scenario), ...events.map((event) => lineOf(event, scenario))].join('\n');
}

function headOf({ servers, service, network, profile, seed }: Scenario): readonly string[] {
  const latency = `${network.latencyUs / 1_000} to ${(network.latencyUs + network.jitterUs) / 1_000} ms`;
  return [
    `profile ${profile}, seed ${seed}: ${servers.length} servers, ${latency} each way, ${JSON.stringify(service)}`,
    ...servers.map((server, index) => `server s${index}: ${JSON.stringify(server)}`),
  ];
}

function lineOf(event: SimEvent, scenario: Scenario): string {
  const at = event.at.toFixed(3).padStart(12);
  const who = 'client' in event && event.client !== undefined ? event.client : '';
  const ask = 'ask' in event ? `#${event.ask}` : '';
  return `${at}  ${(who + ask).padEnd(8)} ${textOf(event, scenario)}`;
}

function textOf(event: SimEvent, { faults }: Scenario): string {
  switch (event.type) {
    case 'fault':
      return `FAULT ${JSON.stringify(faults[(event as { fault: number }).fault])}`;
    case 'healed':
      return `healed: ${faults[(event as { fault: number }).fault]?.kind ?? ''}`;
    case 'ask':
      return `asks for ${event.keys.join(' ')} (${event.how}, ${event.mode ?? 'exclusive'}, wait ${event.waitMs} ms)`;
    case 'granted':
      return `GRANTED ${event.keys.join(' ')}, token ${event.fencingToken}`;
    case 'held':
      return `holds it until ${event.until.toFixed(3)}`;
    default: {
      const { at: _at, type, ...rest } = event as SimEvent & Record<string, unknown>;
      delete rest.client;
      delete rest.ask;
      const details = Object.keys(rest).length === 0 ? '' : ` ${JSON.stringify(rest)}`;
      return `${type}${details}`;
    }
  }
}
