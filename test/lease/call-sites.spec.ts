import { afterEach, describe, expect, it } from '@jest/globals';
import { Logger, type LoggerService } from '@nestjs/common';
import { LockNotAcquiredError, LockService, WithLock, type Lock } from 'nestjs-holdfast';
import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';
import { detailOf } from '../support/detail.js';
import { deferred } from '../support/eventually.js';
import { heldFor, OUTAGE } from '../support/scripted-store.js';
import { scriptedService } from '../support/scripted-service.js';
import type { VirtualRuntime } from '../support/virtual-runtime.js';
import { storeOption } from '../../lib/options/location.js';

const services: LockService[] = [];

function service(store = new MemoryLockStore()): LockService {
  const locks = new LockService({ store: storeOption(store), wait: 50 });
  services.push(locks);
  return locks;
}

afterEach(() => Promise.all(services.splice(0).map((locks) => locks.shutdown(0))));

class OrdersService {
  constructor(private readonly locks: LockService) {}

  async hold(): Promise<Lock> {
    return this.locks.acquire('order:42');
  }

  run(): Promise<void> {
    return this.locks.run('order:42', () => undefined);
  }

  @WithLock('order:42', { wait: 50 })
  async pay(): Promise<void> {
    // Nothing.
  }

  async payTwice(): Promise<void> {
    await this.pay();
  }
}

const rejection = async (call: Promise<unknown>): Promise<Error> =>
  call.then(
    () => new Error('it was not rejected'),
    (error: unknown) => error as Error,
  );

describe('the stack of a call that did not get its lock', () => {
  it.each(['acquire', 'tryRun', 'run'] as const)(
    'names the line that called %s, also when a timer ended the wait',
    async (method) => {
      const { clock, store, locks } = scriptedService();
      store.onAcquire = () => (method === 'tryRun' ? OUTAGE : heldFor(60_000));
      const startsSomething = (): Promise<unknown> => {
        switch (method) {
          case 'acquire':
            return locks.acquire('key', { wait: 100 });
          case 'run':
            return locks.run('key', { wait: 100 }, () => 1);
          case 'tryRun':
            return locks.tryRun('key', () => 1);
        }
      };
      const { stack = '', message } = await (async () => {
        const failing = rejection(startsSomething());
        await clock.advance(1_000);
        return failing;
      })();
      const [header, own, app] = stack.split('\n');
      expect(header).toContain(message);
      expect(own).toContain('lock-engine.ts');
      expect(app).toMatch(/call-sites\.spec\.ts/);
      expect(stack).not.toContain('scheduler');
      await locks.shutdown(0);
    },
  );

  it('names the line that called a decorated method', async () => {
    const locks = service();
    const orders = locks.bind(new OrdersService(locks));
    await orders.hold();
    const error = await rejection(orders.payTwice());
    const { stack = '' } = error;
    expect(stack).toMatch(/^LockNotAcquiredError: The lock (order:42 )?is held by another caller/);
    expect(detailOf(error)).toMatch(/^Lock "order:42" could not be acquired/);
    expect(stack).toMatch(/OrdersService\..*payTwice.*call-sites\.spec\.ts/);
  });

  it('may be replaced', async () => {
    const locks = service();
    const orders = new OrdersService(locks);
    await orders.hold();
    const error = await rejection(orders.run());
    error.stack = 'another one';
    expect(error.stack).toBe('another one');
  });
});

describe('a refusal', () => {
  it('says that the lock is held in this same process, and where it was acquired', async () => {
    const locks = service();
    const orders = new OrdersService(locks);
    await orders.hold();
    const error = await rejection(orders.run());
    expect(error).toBeInstanceOf(LockNotAcquiredError);
    expect(detailOf(error)).toMatch(
      new RegExp(
        'could not be acquired after waiting \\d+ ms: held for \\d+ ms in this same process, acquired at OrdersService\\..*hold.* ' +
          '\\(.*call-sites\\.spec\\.ts:\\d+:\\d+\\), and for up to \\d+ ms more unless it is renewed\\. Try again later, or wait longer\\. ' +
          'If acquire\\(\\) took it and it was forgotten, release it in a finally block\\.$',
      ),
    );
    expect(JSON.stringify((error as LockNotAcquiredError).getResponse())).not.toContain('hold');
  });

  it.each([0, 50])(
    'of acquire() inside the section that holds the key says so, and what to do, with wait: %d',
    async (wait) => {
      const locks = service();
      const error = await locks.run('key', () => rejection(locks.acquire('key', { wait })));
      expect(error).toBeInstanceOf(LockNotAcquiredError);
      expect(detailOf(error)).toMatch(
        /: held for \d+ ms by the run\(\), @WithLock or @RunOnce around this very call, acquired at .*call-sites\.spec\.ts:\d+:\d+\)?: use run\(\), which shares the lock of the outer call, or leave this acquire\(\) out\.$/,
      );
    },
  );

  it('of acquire() in work that outlived its section does not blame that section', async () => {
    const locks = service();
    const over = deferred();
    let late: Promise<Error> | undefined;
    await locks.run('key', () => {
      late = over.promise.then(() => rejection(locks.acquire('key')));
    });
    await locks.acquire('key');
    over.resolve();
    expect(detailOf(await late)).toContain('in this same process');
  });

  it('says so of a call inside the section that holds the key, whose turn did not come', async () => {
    const locks = service();
    const error = await locks.run('key', async () => {
      const gate = deferred();
      const first = locks.run('key', () => gate.promise);
      await locks.tryRun('key', () => 1);
      const second = await rejection(locks.run('key', { wait: 50 }, () => 1));
      gate.resolve();
      await first;
      return second;
    });
    expect(detailOf(error)).toContain('held in this same process, and for up to');
  });

  it('says that another owner holds it when that is another service', async () => {
    const store = new MemoryLockStore();
    const [mine, other] = [service(store), service(store)];
    await other.acquire('order:42');
    const error = await rejection(new OrdersService(mine).run());
    expect(detailOf(error)).toContain('held by another owner for up to');
  });

  it('says that another owner holds it when the store knows that the holder is not ours', async () => {
    const { clock, store, locks } = scriptedService();
    await locks.acquire('key');
    store.onAcquire = () => ({ ...heldFor(Infinity), holder: 'somebody-else' });
    const error = await rejection(locks.acquire('key', { wait: 0 }));
    expect(detailOf(error)).toContain('other software holds it with a lock that has no TTL');
    await ended(locks, clock);
  });
});

describe('a shutdown', () => {
  it('names the locks that it waits for, since when they are held, and where they were acquired', async () => {
    const { clock, locks } = scriptedService();
    const warnings = recordWarnings();
    await new OrdersService(locks).hold();
    for (let more = 1; more <= 6; more += 1) await locks.acquire(`key:${more}`);
    await clock.advance(400);
    const down = locks.shutdown(10_000);
    await clock.advance(900);
    expect(warnings).toEqual([]);
    await clock.advance(200);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(
      /^The shutdown waits up to 9000 ms more for 7 locks not released yet: "order:42" \(held for 1\d\d\d ms, acquired at OrdersService\..*hold.* \(.*call-sites\.spec\.ts:\d+:\d+\)\); "key:1" \(/,
    );
    expect(warnings[0]).toMatch(
      /; and 2 more\. A lock of acquire\(\) is held until it is released: do it in a finally block, or use run\(\) or "await using"\.$/,
    );
    await clock.advance(10_000);
    await down;
  });

  it('names them also when it does not wait', async () => {
    const { clock, locks } = scriptedService();
    const warnings = recordWarnings();
    await locks.acquire('key');
    await ended(locks, clock);
    expect(warnings[0]).toMatch(
      /^The shutdown ends 1 lock not released yet: "key" \(held for \d+ ms, acquired at /,
    );
  });

  it('says nothing when all locks are released in time', async () => {
    const { clock, locks } = scriptedService();
    const warnings = recordWarnings();
    const lock = await locks.acquire('key');
    const down = locks.shutdown(10_000);
    await clock.advance(500);
    await lock.release();
    await down;
    expect(warnings).toEqual([]);
  });
});

async function ended(locks: LockService, clock: VirtualRuntime): Promise<void> {
  const down = locks.shutdown(0);
  await clock.advance(1);
  await down;
}

function recordWarnings(): readonly string[] {
  const warnings: string[] = [];
  const record = (message: unknown): void => {
    warnings.push(String(message));
  };
  const logger: LoggerService = { log: () => undefined, warn: record, error: record };
  Logger.overrideLogger(logger);
  return warnings;
}
