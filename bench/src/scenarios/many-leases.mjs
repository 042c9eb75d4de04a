import { atMost } from '../judge.mjs';
import { withWorkers } from '../support/workers.mjs';
import { OURS } from './contest.mjs';

/** A third of the TTL of 30 s: all leases are renewed once. */
const SECONDS = 10;
const LEASES = 100_000;

/** Both processes are measured in the same seconds: leases have to be renewed all the time. */
export const manyLeases = {
  rows: [
    {
      name: `${LEASES.toLocaleString('en')} leases: client CPU`,
      figure: 'both.holding',
      against: 'both.sending',
      must: atMost(1.4),
    },
  ],

  run: (bench) =>
    withWorkers(2, async ([holder, sender]) => {
      const ms = bench.seconds(SECONDS) * 1_000;
      // As many renewals a second in a quick one.
      const count = Math.round((LEASES * ms) / (SECONDS * 1_000));
      const { url } = bench.redis;
      await holder.ask('holdLeases', { folder: OURS, url, count, ttl: 3 * ms });
      await sender.ask('openRenewals', { url, count });
      const measure = async () => {
        const [holding, sending] = await Promise.all([
          holder.ask('holding', { ms }),
          sender.ask('sending', { count, ms }),
        ]);
        return { holding, sending };
      };
      await measure();
      return bench.compare({ both: measure });
    }),
};
