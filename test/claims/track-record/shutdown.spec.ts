import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { LockService } from 'nestjs-holdfast';
import type { ReleaseOutcome } from '../../../lib/store/lock-store.js';
import { CleanUp } from '../../../lib/store/clean-up.js';
import { Scheduler } from '../../../lib/time/scheduler.js';
import { deferred } from '../../support/eventually.js';
import { RedisServer } from '../../support/redis-server.js';
import { OUTAGE, ScriptedStore } from '../../support/scripted-store.js';
import { scriptedService } from '../../support/scripted-service.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { settled, VirtualRuntime } from '../../support/virtual-runtime.js';

let server: RedisServer;

beforeAll(async () => {
  Logger.overrideLogger(false);
  server = await RedisServer.start();
});

afterAll(async () => {
  await server.stop();
});

const DAY_MS = 86_400_000;

const acquireMany = (locks: LockService, count: number): Promise<unknown> =>
  Promise.all(Array.from({ length: count }, (_, index) => locks.acquire(`key:${String(index)}`)));

describe('a shutdown of a service that holds very many locks', () => {
  it('HF-20 leaves none of 2,500 locks in a Redis 10 ms away', async () => {
    const proxy = await TcpProxy.start(server.port);
    const redis = `redis://127.0.0.1:${String(proxy.port)}`;
    const locks = new LockService({ redis, nodeTimeout: '10s', ttl: '1m' });
    await locks.open();
    await acquireMany(locks, 2_500);
    proxy.delay(10);
    await locks.shutdown(0);
    const names = (await server.command('KEYS', 'lock:*')) as string[];
    expect(names).toHaveLength(0);
    await proxy.stop();
  });

  it('HF-20 goes on for as long as the store confirms releases, up to ten seconds', async () => {
    const { clock, store, locks } = scriptedService({ ttl: '1h' });
    await acquireMany(locks, 3_000);
    const waiting: ((outcome: ReleaseOutcome) => void)[] = [];
    store.onRelease = () => new Promise((resolve) => waiting.push(resolve));
    let isOver = false;
    const shutdown = locks.shutdown(0).then(() => (isOver = true));
    for (let second = 0; second < 9; second += 1) {
      await clock.advance(900);
      for (const resolve of waiting.splice(0, 10)) resolve({ status: 'released' });
      await settled();
      expect(isOver).toBe(false);
    }
    await clock.advance(2_500);
    await shutdown;
    expect(clock.timers).toBe(0);
  });

  it('HF-20 waits a second for a store that is silent, and no longer', async () => {
    const { clock, store, locks } = scriptedService({ ttl: '1h' });
    await acquireMany(locks, 3_000);
    store.onRelease = () => deferred<ReleaseOutcome>().promise;
    const shutdown = locks.shutdown(0);
    await clock.advance(1_000);
    await shutdown;
    expect(clock.timers).toBe(0);
  });

  it('HF-20 ends a round of the clean-up that is under way, and has a thousand on their way at once', async () => {
    const clock = new VirtualRuntime();
    const store = new ScriptedStore();
    const scheduler = new Scheduler(clock);
    const cleanUp = new CleanUp({ store, scheduler, onRemoved: () => undefined });
    store.onRelease = () => OUTAGE;
    for (let index = 0; index < 3_000; index += 1) {
      const id = String(index);
      cleanUp.add({ key: `key:${id}`, token: `token:${id}`, ttlMs: DAY_MS });
    }
    await settled();
    let [onTheirWay, most] = [0, 0];
    let gate = deferred();
    store.onRelease = async () => {
      most = Math.max(most, (onTheirWay += 1));
      await gate.promise;
      onTheirWay -= 1;
      return { status: 'released' };
    };
    await clock.advance(200);
    expect(most).toBe(10);
    const finished = cleanUp.finish();
    const [round] = [gate, (gate = deferred())];
    round.resolve();
    await settled();
    expect(most).toBe(1_000);
    gate.resolve();
    await finished;
    expect(cleanUp.size).toBe(0);
    expect(clock.timers).toBe(0);
  });
});
