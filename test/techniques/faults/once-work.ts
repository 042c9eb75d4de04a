/** Whether work that is to be done once was marked by one attempt, and not tried again after that. */
import { nameOf } from './grants.js';
import type { ClientEvent } from './history.js';

type Outcome = ClientEvent & { readonly type: 'once' };

/** Of runs in which no server forgets what was done. */
export function repeatedWork(events: readonly { readonly type: string }[]): readonly string[] {
  const keys = new Map<string, string>();
  const completed = new Map<string, Outcome>();
  const tokens = new Map<string, number>();
  /** The last attempt at each key. */
  const latest = new Map<string, string>();
  const violations: string[] = [];
  for (const event of events as readonly ClientEvent[]) {
    if (!('ask' in event)) continue;
    const name = nameOf(event);
    if (event.type === 'ask') keys.set(name, event.keys[0]!);
    const key = keys.get(name)!;
    const done = completed.get(key);
    if (event.type === 'attempt') {
      tokens.set(name, event.fencingToken);
      if (event.fencingToken > (tokens.get(latest.get(key) ?? '') ?? 0)) latest.set(key, name);
      // An earlier attempt that has lost its lock, and does not know it yet, may come after a later one: "done at least once".
      if (done !== undefined && event.fencingToken > tokens.get(nameOf(done))!)
        violations.push(
          `once: ${name} is attempt ${event.attempt} at "${key}", which ${nameOf(done)} has marked as done`,
        );
    }
    if (event.type !== 'once') continue;
    if (event.outcome === 'completed') {
      const later = latest.get(key);
      if (later !== undefined && tokens.get(later)! > tokens.get(name)!)
        violations.push(
          `once: "${key}" was marked as done by ${name}, which ${later} had superseded`,
        );
      if (done !== undefined)
        violations.push(`once: "${key}" was marked as done by ${nameOf(done)} and by ${name}`);
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
