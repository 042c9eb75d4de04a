import { lasting } from '../../text/times.js';
import { ok, warning, type Found } from '../finding.js';
import { timesOf } from '../measure.js';
import type { CommonCheck } from '../subject.js';

/** Further ahead, a server does not take the fencing token that a client proposes. */
const APART_MS = 1_000;

const REMEDY = 'Run a time service (NTP, chrony) on all of them.';

/** Whether the clocks of the servers and of this machine agree. */
export const clocks: CommonCheck = {
  name: 'clocks',
  async examine({ servers, kind }) {
    const all = await Promise.all(servers.map(timesOf));
    const offsets = all.flatMap((each) => (each.status === 'measured' ? [each.offsetMs] : []));
    if (offsets.length === 0) return [];
    const [least, most] = [Math.min(...offsets), Math.max(...offsets)];
    const found: Found[] = [];
    if (most - least > APART_MS && kind === 'several masters')
      found.push(
        warning(
          `The clocks of the servers are ${lasting(most - least)} apart: each lock takes a round trip more, and fencing tokens run ahead.`,
          REMEDY,
        ),
      );
    const furthest = Math.abs(most) > Math.abs(least) ? most : least;
    if (Math.abs(furthest) > APART_MS) {
      const direction = furthest > 0 ? 'ahead of' : 'behind';
      found.push(
        warning(
          `A clock of a server is ${lasting(Math.abs(furthest))} ${direction} this machine's: "since" is shown wrong here by as much. Locks are not affected.`,
          REMEDY,
        ),
      );
    }
    return found.length > 0
      ? found
      : [ok('The clocks of the servers and of this machine agree to within a second.')];
  },
};
