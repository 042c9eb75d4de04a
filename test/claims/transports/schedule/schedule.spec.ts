import { Injectable, type INestApplicationContext } from '@nestjs/common';
import { Cron, Interval, ScheduleModule, Timeout } from '@nestjs/schedule';
import { Test } from '@nestjs/testing';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { LockModule, LockService, WithLock } from 'nestjs-holdfast';
import { deferred } from '../../../support/eventually.js';
import { RedisServer } from '../../../support/redis-server.js';

const SOON_MS = 20;

@Injectable()
class Jobs {
  readonly ran: string[] = [];
  readonly allRan = deferred();

  @Cron('* * * * * *')
  @WithLock('cron')
  async cron(): Promise<void> {
    this.#note('cron');
  }

  @WithLock('interval')
  @Interval(SOON_MS)
  async interval(): Promise<void> {
    this.#note('interval');
  }

  /** Once: it stands in line. */
  @Timeout(SOON_MS)
  @WithLock('timeout', { wait: '20s' })
  async timeout(): Promise<void> {
    this.#note('timeout');
  }

  #note(name: string): void {
    this.ran.push(name);
    if (new Set(this.ran).size === 3) this.allRan.resolve();
  }
}

let redis: RedisServer;
let app: INestApplicationContext;

beforeAll(async () => {
  redis = await RedisServer.start();
});
afterAll(async () => {
  await app.close();
  await redis.stop();
});

it('jobs that are refused are in the log of Nest, and run once they get their lock', async () => {
  const module = await Test.createTestingModule({
    imports: [ScheduleModule.forRoot(), LockModule.forRoot({ redis: redis.url })],
    providers: [Jobs],
  }).compile();
  const refused = { cron: deferred(), interval: deferred() };
  module.useLogger({
    log: () => undefined,
    warn: () => undefined,
    error: (error: { readonly keys?: readonly (keyof typeof refused)[] }) => {
      for (const key of error.keys ?? []) refused[key].resolve();
    },
  });
  const locks = module.get(LockService);
  const held = [];
  for (const key of ['cron', 'interval', 'timeout'])
    held.push(await locks.acquire(key, { ttl: '1m' }));
  app = await module.init();
  await Promise.all([refused.cron.promise, refused.interval.promise]);
  const { ran, allRan } = app.get(Jobs);
  expect(ran).toEqual([]);
  for (const lock of held) await lock.release();
  await allRan.promise;
  expect(ran.filter((name) => name === 'timeout')).toEqual(['timeout']);
});
