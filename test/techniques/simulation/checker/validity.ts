import { isOfOperator, replaces, type Fault, type Scenario } from '../scenario.js';
import type { Facts } from './facts.js';
import { longestTtlMs } from './losses.js';

/**
 * "A holder counts its validity from the moment the request was sent": those who believe to hold a key for longer than the servers will
 * keep it for them. Where servers have forgotten the key, or clocks were set, this counts from the next renewal on.
 */
export function validityViolations(scenario: Scenario, { events, done }: Facts): readonly string[] {
  // A holder that cannot be notified is replaced.
  if (done.length > 0 && replaces(scenario)) return [];
  const differing = done.filter(({ fault }) => makesDiffer(fault, scenario.service));
  const ttlMs = longestTtlMs(scenario);
  return events.flatMap((event) => {
    if (event.type !== 'uncovered') return [];
    // The request that the validity counts from was sent then, or later.
    const sentAt = event.at + event.believedMs - ttlMs;
    const isExplained = differing.some(
      ({ fault, at, healedAt }) => at <= event.at && (lasts(fault) || healedAt >= sentAt),
    );
    if (isExplained) return [];
    return [
      `validity: ${event.client}#${event.ask} believes to hold "${event.key}" for ${event.believedMs.toFixed(1)} ms more, and the servers keep it for ${event.keptMs.toFixed(1)} ms`,
    ];
  });
}

/** An operator acts some time after looking. A process whose clock was set back is wrong about a sleep that comes later. */
const lasts = (fault: Fault): boolean => isOfOperator(fault) || fault.kind === 'process-clock-set';

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
