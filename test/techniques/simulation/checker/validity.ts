import { replaces, type Fault, type Scenario } from '../scenario.js';
import type { Facts } from './facts.js';

/**
 * "A holder counts its validity from the moment the request was sent": those who believe to hold a key for longer than the servers will
 * keep it for them. Not where servers forget, or clocks are set.
 */
export function validityViolations(scenario: Scenario, { events, done }: Facts): readonly string[] {
  if (done.some(({ fault }) => makesDiffer(fault, scenario.service))) return [];
  // A holder that cannot be notified is replaced.
  if (done.length > 0 && replaces(scenario)) return [];
  return events.flatMap((event) =>
    event.type === 'uncovered'
      ? [
          `validity: ${event.client}#${event.ask} believes to hold "${event.key}" for ${event.believedMs.toFixed(1)} ms more, and the servers keep it for ${event.keptMs.toFixed(1)} ms`,
        ]
      : [],
  );
}

function makesDiffer(fault: Fault, { replicas }: Scenario['service']): boolean {
  switch (fault.kind) {
    case 'server-restarted':
      return fault.data !== 'kept';
    case 'fail-over':
      return replicas === undefined;
    case 'foreign-value':
      return fault.at === 'main' || fault.at === 'holders';
    case 'data-restored':
    case 'server-flushed':
    case 'key-lost':
    case 'force-released':
    case 'seen-released':
    case 'instance-released':
    case 'server-clock-set':
    case 'process-clock-set':
      return true;
    default:
      return false;
  }
}
