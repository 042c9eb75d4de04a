import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { LockService, WithLock } from 'nestjs-holdfast';
import { deferred } from '../support/eventually.js';

const { NODE_ENV } = process.env;
const services: LockService[] = [];
const said: string[] = [];

beforeAll(() => {
  Logger.overrideLogger(false);
  jest.spyOn(Logger.prototype, 'warn').mockImplementation((text: string) => void said.push(text));
});

afterEach(async () => {
  await Promise.all(services.splice(0).map((locks) => locks.shutdown(0)));
  said.length = 0;
});

afterAll(() => {
  jest.restoreAllMocks();
  process.env.NODE_ENV = NODE_ENV;
});

function serviceIn(environment: string): LockService {
  process.env.NODE_ENV = environment;
  const locks = new LockService({ store: 'memory' });
  process.env.NODE_ENV = NODE_ENV;
  services.push(locks);
  return locks;
}

class Orders {
  readonly isOver = deferred();
  audit: Promise<unknown> | undefined;

  constructor(readonly locks: LockService) {}

  @WithLock('order:<id>')
  async pay(id: string): Promise<string> {
    this.audit = this.isOver.promise.then(() => this.writeAudit());
    return id;
  }

  private async writeAudit(): Promise<void> {
    await this.locks.run('audit', () => undefined);
  }
}

describe('work that outlives its section', () => {
  const CONTINUES =
    /^Work under the lock of "order:42" continues after its section has ended, without that lock: it has asked for the lock of "audit", at .*outlived-work\.spec\.ts:\d+:\d+\)?\. Await or return this work/;

  it.each(['run', 'acquire', 'tryAcquire'] as const)(
    'HF-39 is named in development when it calls %s',
    async (method) => {
      const locks = serviceIn('development');
      const isOver = deferred();
      let audit: Promise<unknown> | undefined;
      await locks.run('order:42', () => {
        audit = isOver.promise.then(async () =>
          method === 'run'
            ? locks.run('audit', () => undefined)
            : (await locks[method]('audit'))?.release(),
        );
      });
      isOver.resolve();
      await audit;
      expect(said).toEqual([expect.stringMatching(CONTINUES)]);
    },
  );

  it('of a decorated method is named', async () => {
    const orders = new Orders(serviceIn('development'));
    orders.locks.bind(orders);
    await orders.pay('42');
    orders.isOver.resolve();
    await orders.audit;
    expect(said).toEqual([expect.stringMatching(CONTINUES)]);
  });

  it('HF-39 is named when it asks for the lock that it no longer has, once for each section', async () => {
    const locks = serviceIn('development');
    let late: Promise<unknown> | undefined;
    await locks.run('order:42', () => {
      late = sleep(1).then(() => [locks.current()?.signal, locks.current()?.fencingToken]);
    });
    expect(await late).toEqual([undefined, undefined]);
    expect(said).toEqual([
      expect.stringMatching(
        /"order:42" continues .*: it has called current\(\), at .*outlived-work\.spec\.ts:/,
      ),
    ]);
  });

  it('is not what is awaited, in whatever order it ends, nor what its caller does afterwards', async () => {
    const locks = serviceIn('development');
    await locks.run('order:42', async () => {
      await Promise.all([
        locks.run('order:42', () => sleep(2)),
        locks.run('audit', () => sleep(1)),
      ]);
      void locks.run('order:42', () => sleep(5));
    });
    await locks.run('audit', () => locks.current());
    await (await locks.acquire('other')).release();
    expect(said).toEqual([]);
  });

  it.each(['production', 'test'])('is not looked for in %s', async (environment) => {
    const locks = serviceIn(environment);
    let late: Promise<unknown> | undefined;
    await locks.run('order:42', () => {
      late = sleep(1).then(() => locks.run('audit', () => 1));
    });
    expect(await late).toBe(1);
    expect(said.filter((text) => text.includes('continues'))).toEqual([]);
  });
});
