import type { Played } from '../play.js';

/** What is left when all is over. */
export function leftovers({ events, isAtRest, simulatedMs }: Played): readonly string[] {
  const violations = events.flatMap((event) => {
    if (event.type === 'left-open')
      return [
        `left: ${event.client} has ${event.timers} timers and ${event.connections} connections after its shutdown`,
      ];
    if (event.type === 'left-key' && !mayStay(event))
      return [`left: key "${event.name}" on server ${event.server} (PTTL ${event.ttlMs})`];
    return [];
  });
  if (!isAtRest) violations.push(`left: processes run after ${simulatedMs.toFixed(0)} ms`);
  return violations;
}

/** The last fencing token of a key, and what is remembered of work, for a while; the guard's own key. */
const mayStay = ({ name, ttlMs }: { readonly name: string; readonly ttlMs: number }): boolean =>
  (/[:{](fence|once)\}?$/.test(name) && ttlMs >= 0) || (name.includes('epoch') && ttlMs === -1);
