import { once } from 'node:events';
import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { LockModule, LockService } from 'nestjs-holdfast';
import { Program } from '../../claims/sample/program.js';
import { deferred } from '../../support/eventually.js';
import { RedisServer } from '../../support/redis-server.js';
import { closeApps, startApp } from './start-app.js';

/** Apollo waits ten seconds for running requests, a slow hook waits until the test ends it. */
const LONGEST_MS = 5_000;

let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start();
});

afterAll(() => server.stop());

describe.each(['apollo', 'mercurius', 'microservice', 'hook'])(
  'an application that receives SIGTERM beside what delays its hooks (%s)',
  (beside) => {
    let program: Program;

    afterEach(async () => {
      await program.kill();
      await server.command('FLUSHALL');
    });

    it('refuses waiting callers at once, ends leaders, and takes locks away at the deadline', async () => {
      program = new Program('test/nest/module/shutdown-beside.ts', {
        BESIDE: beside,
        REDIS_URL: server.url,
      });
      const [, url = ''] = await program.says(/open on (\S+)/);
      await program.says(/leads/);
      if (beside === 'apollo') {
        fetch(`${url}/endless`, { method: 'POST' }).catch(() => undefined);
        await program.says(/a request begins/);
      }
      program.signal('SIGTERM');
      const said = await Promise.all(
        [
          /the waiter: LOCK_SERVICE_CLOSED after (\d+) ms/,
          /the leader: left after (\d+) ms/,
          /the holder: shutdown after (\d+) ms/,
        ].map((pattern) => program.says(pattern)),
      );
      for (const [, ms] of said) expect(Number(ms)).toBeLessThan(LONGEST_MS);
      if (beside !== 'apollo') await program.says(/the hook begins/);
      program.signal('SIGUSR2');
      expect(await program.ended).toEqual({ code: null, signal: 'SIGTERM' });
      expect(await server.command('KEYS', 'lock:*')).toEqual([]);
    });
  },
);

describe('app.close() without a signal', () => {
  afterEach(closeApps);

  it('refuses waiting callers before the first hook of the application', async () => {
    const [begun, mayEnd] = [deferred(), deferred()];
    @Injectable()
    class SlowHook implements OnModuleDestroy {
      async onModuleDestroy(): Promise<void> {
        begun.resolve();
        await mayEnd.promise;
      }
    }
    const { app } = await startApp({
      imports: [
        LockModule.forRoot({ store: 'memory', shutdownTimeout: 50 }),
        LockModule.forRoot({ store: 'memory', shutdownTimeout: 50, name: 'jobs', isGlobal: false }),
      ],
      providers: [SlowHook],
    });
    const locks = app.get(LockService);
    const lock = await locks.acquire('order:42');
    const waiting = locks.acquire('order:42', { wait: '10m' });
    const closing = app.close();
    await begun.promise;
    await expect(waiting).rejects.toMatchObject({ code: 'LOCK_SERVICE_CLOSED' });
    await once(lock.signal, 'abort');
    mayEnd.resolve();
    await closing;
  });
});
