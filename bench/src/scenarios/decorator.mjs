import { LockService, WithLock } from '../../../dist/index.js';
import { atMost } from '../support/must.mjs';
import { inRounds } from '../support/rounds.mjs';
import { median } from '../support/stats.mjs';

const CALLS = 10_000;

class Orders {
  async pay(orderId) {
    return orderId;
  }

  async plain(orderId) {
    return orderId;
  }
}

decorate(Orders.prototype, 'pay', WithLock('order:<orderId>'));

/** What a compiler makes of `@WithLock(…)` above a method. */
function decorate(prototype, name, decorator) {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name);
  Object.defineProperty(prototype, name, decorator(prototype, name, descriptor) ?? descriptor);
}

export const decorator = {
  id: 'decorator',
  title: 'acquire and release, locks.run and @WithLock, in memory: what a call costs',

  async run({ quick }) {
    const locks = new LockService({ store: 'memory' });
    await locks.open();
    const orders = locks.bind(new Orders());
    const ways = [
      ['plain call', 'bare', () => orders.plain('42')],
      [
        'acquire, release',
        'holdfast',
        async () => {
          const lock = await locks.acquire('order:42', { wait: 0 });
          await orders.plain('42');
          await lock.release();
        },
      ],
      ['locks.run', 'holdfast', () => locks.run('order:42', { wait: 0 }, () => orders.plain('42'))],
      ['@WithLock', 'holdfast', () => orders.pay('42')],
    ];
    const measure = async ([, , call]) => {
      const start = performance.now();
      for (let calls = 0; calls < CALLS; calls += 1) await call();
      return ((performance.now() - start) / CALLS) * 1_000;
    };
    await inRounds(ways, 3, measure);
    const results = await inRounds(ways, quick ? 9 : 21, measure);
    await locks.shutdown(0);

    const [, byHand, run, method] = ways.map((way) => results.get(way));
    const over = (more, less) => median(more.map((us, round) => us - less[round]));
    return {
      columns: [
        { name: 'label', head: '' },
        { name: 'us', head: 'µs for each call', digits: 2 },
      ],
      rows: ways.map((way) => ({ label: way[0], kind: way[1], us: median(results.get(way)) })),
      musts: [
        atMost('µs for acquire and release', median(byHand), 4),
        atMost('µs for locks.run more than for these', over(run, byHand), 3),
        atMost('µs for @WithLock more than for locks.run', over(method, run), 1.5),
      ],
    };
  },
};
