import { builtIn } from '../libraries/holdfast.mjs';

/** So many calls of one way, before the next way follows. */
const CALLS = 500;

let ways;

class Orders {
  async pay(orderId) {
    return orderId;
  }

  async plain(orderId) {
    return orderId;
  }
}

/** What a compiler makes of `@WithLock(…)` above a method. */
function decorate(prototype, name, decorator) {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name);
  Object.defineProperty(prototype, name, decorator(prototype, name, descriptor) ?? descriptor);
}

async function open(folder) {
  const { LockService, WithLock } = await builtIn(folder);
  decorate(Orders.prototype, 'pay', WithLock('order:<orderId>'));
  const locks = new LockService({ store: 'memory' });
  await locks.open();
  const orders = locks.bind(new Orders());
  return {
    async acquire() {
      const lock = await locks.acquire('order:42', { wait: 0 });
      await orders.plain('42');
      await lock.release();
    },
    run: () => locks.run('order:42', { wait: 0 }, () => orders.plain('42')),
    decorated: () => orders.pay('42'),
  };
}

/** The µs of CPU by which `run` costs more than `acquire`, and a decorated method more than `run`, in memory. */
export async function callsInMemory({ folder, ms }) {
  ways ??= await open(folder);
  const spent = { acquire: 0, run: 0, decorated: 0 };
  let calls = 0;
  for (const end = performance.now() + ms; performance.now() < end; calls += CALLS)
    for (const [name, call] of Object.entries(ways)) {
      const before = process.cpuUsage();
      for (let at = 0; at < CALLS; at += 1) await call();
      const { user, system } = process.cpuUsage(before);
      spent[name] += user + system;
    }
  const { acquire, run, decorated } = spent;
  return { runUs: (run - acquire) / calls, decoratorUs: (decorated - run) / calls };
}
