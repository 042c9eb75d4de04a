import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { LockService, LockStoreUnavailableError, type RunOnceResult } from 'nestjs-holdfast';
import { keyNames } from '../../../lib/store/redis/scripts/key-names.js';
import { beginScript, endScript } from '../../../lib/store/redis/scripts/once.js';
import type { ScriptCall } from '../../../lib/store/redis/scripts/script.js';
import { encoded } from '../../support/encoded.js';
import { deferred, type Deferred } from '../../support/eventually.js';
import { watchHandles } from '../../support/no-leaks.js';
import { RedisServer } from '../../support/redis-server.js';

const handles = watchHandles();
const services: LockService[] = [];
let server: RedisServer;

beforeAll(async () => {
  Logger.overrideLogger(false);
  server = await RedisServer.start();
}, 60_000);

afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.shutdown(0)));
  await server.command('CONFIG', 'SET', 'maxmemory', '0');
  await server.command('FLUSHALL');
}, 60_000);

afterAll(async () => {
  await server.stop();
  await handles.expectNoneOpen();
}, 60_000);

async function open(): Promise<LockService> {
  const service = new LockService({ redis: server.url, ttl: '1m', nodeTimeout: 500 });
  services.push(service);
  await service.open();
  return service;
}

interface Working {
  readonly ending: Promise<RunOnceResult<string>>;
  readonly work: Deferred<string>;
}

/** An attempt that has begun, and works until the test ends it. */
async function beginAt(locks: LockService): Promise<Working> {
  const [begun, work] = [deferred(), deferred<string>()];
  const ending = locks.runOnce('job', { wait: '20s', keepValue: true }, () => {
    begun.resolve();
    return work.promise;
  });
  ending.catch(() => undefined);
  await begun.promise;
  return { ending, work };
}

describe('work that is to be done once, on a server whose memory is full', () => {
  const fill = async (): Promise<void> => {
    await server.command('CONFIG', 'SET', 'maxmemory', '1');
  };

  it('HF-18 that it is done is kept, and it is not done twice', async () => {
    const locks = await open();
    const { ending, work } = await beginAt(locks);
    await fill();
    work.resolve('done');
    expect(await ending).toMatchObject({ outcome: 'completed', attempts: 1 });
    await server.command('CONFIG', 'SET', 'maxmemory', '0');
    expect(await locks.runOnce('job', { keepValue: true }, () => 'again')).toEqual({
      outcome: 'done-elsewhere',
      attempts: 1,
      value: 'done',
    });
  });

  it('HF-18 so is how else an attempt ends, and that it goes on', async () => {
    const token = 'holdfast:me';
    const names = keyNames('lock:')('job');
    const run: RedisServer['command'] = (...parts) => server.command(...parts);
    for (const what of ['keep', 'done', 'failed', 'final', 'returned'] as const) {
      await run('FLUSHALL');
      await run('SET', names.main, token);
      const me = { names: [names], token, owner: 'me', lifeMs: 60_000 };
      const ask = (call: ScriptCall): Promise<unknown> => run('EVAL', beginScript.lua, ...call);
      await ask(encoded(beginScript, { ...me, attempts: 3, keepMs: 60_000 }));
      await run('CONFIG', 'SET', 'maxmemory', '1');
      const answer = await ask(encoded(endScript, { ...me, what, attempt: 1, text: 'text' }));
      expect([what, answer]).toEqual([what, [1]]);
      await run('CONFIG', 'SET', 'maxmemory', '0');
    }
  });

  it('HF-18 no attempt begins', async () => {
    const locks = await open();
    let works = 0;
    await locks.runOnce('before', () => undefined); // the scripts are loaded
    await fill();
    const beginning = locks.runOnce('job', { wait: 0 }, () => (works += 1));
    await expect(beginning).rejects.toBeInstanceOf(LockStoreUnavailableError);
    expect(works).toBe(0);
  });
});
