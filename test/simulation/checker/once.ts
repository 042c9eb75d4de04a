import type { SimEvent } from '../history.js';
import type { Facts } from './facts.js';

type Outcome = SimEvent & { readonly type: 'once' };

/** Work that is to be done once: marked by one attempt, and not tried again after that. */
export function onceViolations(facts: Facts): readonly string[] {
  // "If Redis loses its data, it forgets what was done."
  if (facts.done.some(({ fault }) => forgetsWork(fault))) return [];
  const keys = new Map<string, string>();
  const attempts = new Map<string, number>();
  const completed = new Map<string, Outcome>();
  const violations: string[] = [];
  for (const event of facts.events) {
    if (!('ask' in event)) continue;
    const name = `${event.client}#${event.ask}`;
    if (event.type === 'ask') keys.set(name, event.keys[0]!);
    const key = keys.get(name)!;
    const done = completed.get(key);
    if (event.type === 'attempt') {
      if (done !== undefined)
        violations.push(
          `once: ${name} is attempt ${event.attempt} at "${key}", which ${done.client}#${done.ask} has marked as done`,
        );
      const last = attempts.get(key) ?? 0;
      attempts.set(key, Math.max(last, event.attempt));
    }
    if (event.type !== 'once') continue;
    if (event.outcome === 'completed') {
      if (done !== undefined)
        violations.push(
          `once: "${key}" was marked as done by ${done.client}#${done.ask} and by ${name}`,
        );
      completed.set(key, event);
    }
    if (event.outcome === 'done-elsewhere' && event.value !== undefined && done !== undefined) {
      if (event.value !== done.value)
        violations.push(
          `once: ${name} was told the value ${JSON.stringify(event.value)} of "${key}", which is ${JSON.stringify(done.value)}`,
        );
    }
  }
  return violations;
}

const forgetsWork = (fault: Facts['done'][number]['fault']): boolean =>
  fault.kind === 'server-flushed' ||
  fault.kind === 'fail-over' ||
  fault.kind === 'server-clock-set' ||
  (fault.kind === 'server-restarted' && fault.data === 'lost');
