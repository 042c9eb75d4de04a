import { channel, tracingChannel } from 'node:diagnostics_channel';
import { LockService } from '../../../dist/index.js';
import { atMost } from '../support/must.mjs';
import { median } from '../support/stats.mjs';

const LOCKS = 2_000;
const READS = 2_000_000;

/** The two kinds of channels, and whether anybody subscribes to one of them: the question that each lock asks. */
const KINDS = [channel('bench:plain'), tracingChannel('bench:traced')].map((one) => {
  let prototype = Object.getPrototypeOf(one);
  while (!Object.hasOwn(prototype, 'hasSubscribers')) prototype = Object.getPrototypeOf(prototype);
  const descriptor = Object.getOwnPropertyDescriptor(prototype, 'hasSubscribers');
  return { one, prototype, descriptor };
});

/** How often each kind is asked while `work` runs. */
async function asked(work) {
  const counts = KINDS.map(({ prototype, descriptor }, index) => {
    const count = { reads: 0, index };
    Object.defineProperty(prototype, 'hasSubscribers', {
      ...descriptor,
      get() {
        count.reads += 1;
        return descriptor.get.call(this);
      },
    });
    return count;
  });
  await work();
  for (const { prototype, descriptor } of KINDS)
    Object.defineProperty(prototype, 'hasSubscribers', descriptor);
  return counts.map(({ reads }) => reads);
}

/** Nanoseconds for one question. */
function questionNs({ one }) {
  let answers = 0;
  const start = performance.now();
  for (let read = 0; read < READS; read += 1) if (one.hasSubscribers) answers += 1;
  const ns = ((performance.now() - start) / READS) * 1e6;
  if (answers > 0) throw new Error('Somebody subscribes.');
  return ns;
}

export const telemetry = {
  id: 'telemetry',
  title: 'Telemetry that nobody subscribes to, acquire and release, one caller',

  async run({ redis, quick }) {
    const locks = new LockService({ redis: redis.url });
    await locks.open();
    const lock = async () => {
      for (let count = 0; count < LOCKS; count += 1) await (await locks.acquire('key')).release();
    };
    await lock();
    const reads = await asked(lock);
    const rounds = quick ? 3 : 7;
    const cpuUs = [];
    for (let round = 0; round < rounds; round += 1) {
      const before = process.cpuUsage();
      await lock();
      const { user, system } = process.cpuUsage(before);
      cpuUs.push((user + system) / LOCKS);
    }
    await locks.shutdown(0);
    const rows = KINDS.map((kind, index) => {
      const ns = median(Array.from({ length: rounds }, () => questionNs(kind)));
      const each = reads[index] / LOCKS;
      return {
        label: ['plain channels', 'tracing channels'][index],
        each,
        ns,
        us: (each * ns) / 1e3,
      };
    });
    const us = rows.reduce((sum, row) => sum + row.us, 0);
    const ofLock = (100 * us) / median(cpuUs);
    return {
      columns: [
        { name: 'label', head: '' },
        { name: 'each', head: 'questions a lock', digits: 1 },
        { name: 'ns', head: 'ns a question', digits: 1 },
        { name: 'us', head: 'µs a lock', digits: 3 },
      ],
      rows: [
        ...rows.map((row) => ({ ...row, kind: 'holdfast' })),
        { label: 'client CPU of a lock', kind: 'bare', us: median(cpuUs) },
      ],
      musts: [
        atMost('% of the client CPU of a lock, for telemetry without a subscriber', ofLock, 1),
      ],
    };
  },
};
