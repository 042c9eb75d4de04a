/** Preloaded into a process of the shop: prints each event of its locks on a line, as `event <name> <key>`. */
import { subscribe } from 'node:diagnostics_channel';

const EVENTS = ['waiting', 'acquired', 'refused', 'unavailable', 'jeopardy', 'lost', 'released'];

for (const event of EVENTS) {
  subscribe(`holdfast:${event}`, ({ keys }) => console.log(`event ${event} ${keys.join(',')}`));
}
