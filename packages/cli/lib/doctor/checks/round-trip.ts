import { lasting } from '../../text/times.js';
import { error, ok, unknown, warning } from '../finding.js';
import { timesOf } from '../measure.js';
import type { ServerCheck } from '../subject.js';

const SLOW_MS = 50;

/** The default of `nodeTimeout`. */
const LIMIT_MS = 1_000;

/** How long an answer takes: a lock takes one round trip, a wait two. */
export const roundTrip: ServerCheck = {
  name: 'round trip',
  async examine(server) {
    const measured = await timesOf(server);
    if (measured.status === 'failed')
      return [unknown('How long an answer takes', measured.message)];
    const { medianMs } = measured;
    const text = `An answer takes ${medianMs < 1 ? 'less than 1 ms' : lasting(medianMs)}.`;
    if (medianMs >= LIMIT_MS / 2)
      return [
        error(
          `${text} With the default "nodeTimeout" of 1 s, many locks fail (503).`,
          'Use a server that is nearer or less busy, or raise "nodeTimeout".',
        ),
      ];
    if (medianMs >= SLOW_MS)
      return [
        warning(
          `${text} Each lock takes at least that long.`,
          'Use a server that is nearer or less busy.',
        ),
      ];
    return [ok(text)];
  },
};
