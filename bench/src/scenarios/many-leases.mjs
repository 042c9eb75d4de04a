import { atMost } from '../support/must.mjs';
import { withWorkers } from '../support/workers.mjs';

export const manyLeases = {
  id: 'many-leases',
  title: 'One process holds 100,000 leases, TTL 30 s: what renewing them costs',

  async run({ redis, quick }) {
    // As many renewals a second in the quick one.
    const [count, ttl] = quick ? [30_000, 9_000] : [100_000, 30_000];
    const ms = ttl / 3;
    const before = await redis.cpuSeconds();
    const [{ heapPerLease, cores, stillHeld }, ended] = await withWorkers(
      1,
      async ([worker]) => [
        await worker.ask('holdLeases', { url: redis.url, count, ttl, ms }),
        await redis.cpuSeconds(),
      ],
      ['--expose-gc'],
    );
    await redis.flush();
    const kib = heapPerLease / 1_024;
    const row = {
      label: `Holdfast, ${count.toLocaleString('en')} leases, ${ms / 1_000} s`,
      kind: 'holdfast',
      percent: cores * 100,
      kib,
      stillHeld,
      serverSeconds: ended - before,
    };
    return {
      columns: [
        { name: 'label', head: '' },
        { name: 'percent', head: '% of a core', digits: 1 },
        { name: 'kib', head: 'KiB of heap for each', digits: 2 },
        { name: 'stillHeld', head: 'still held', digits: 0 },
      ],
      rows: [row],
      musts: [
        atMost('% of a core', row.percent, 8),
        atMost('KiB of heap for each lease', kib, 1.2),
        atMost('leases lost', count - stillHeld, 0),
      ],
    };
  },
};
