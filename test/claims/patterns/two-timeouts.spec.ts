import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { LockLostError, LockNotAcquiredError, type LockService } from 'nestjs-holdfast';
import { eventually, until } from '../../support/eventually.js';
import { RedisServer } from '../../support/redis-server.js';
import { print } from './known-ways.js';
import { Services } from './services.js';

/** A lock timeout, as it is meant there: the lock is over after it, whoever still works. */
const TIMEOUT = { ttl: '400ms', autoExtend: false } as const;

let server: RedisServer;
let mine: LockService;
let theirs: LockService;
const services = new Services();

beforeAll(async () => {
  Logger.overrideLogger(false); // lost locks are the subject here
  server = await RedisServer.start();
});

beforeEach(async () => {
  await server.command('FLUSHALL');
  [mine, theirs] = await Promise.all([services.open(server.url), services.open(server.url)]);
});

afterEach(() => services.closeAll());

afterAll(async () => {
  await server.stop();
  Logger.overrideLogger(['log', 'warn', 'error']);
});

const aborted = async (signal: AbortSignal): Promise<void> => {
  if (signal.aborted) return;
  await until({ once: (event, listener) => signal.addEventListener(event, listener) }, 'abort');
};

describe('the timeout of the acquiring', () => {
  it('is kept: not given up before, not waited for ever after', async () => {
    await using _held = await theirs.acquire('printer');
    const since = performance.now();
    await expect(mine.acquire('printer', { wait: '300ms' })).rejects.toThrow(LockNotAcquiredError);
    const waitedMs = performance.now() - since;
    expect(waitedMs).toBeGreaterThanOrEqual(295); // timers of Node may be a little early
    expect(waitedMs).toBeLessThan(5_000);
  });

  it('leaves nobody in the line who has given up', async () => {
    const held = await theirs.acquire('printer');
    await expect(mine.acquire('printer', { wait: '100ms' })).rejects.toThrow(LockNotAcquiredError);
    // Its last request may have been on its way when it gave up.
    await eventually(async () => (await server.command('EXISTS', '{lock:printer}:queue')) === 0);
    await held.release();
    expect(await mine.tryAcquire('printer')).not.toBeNull();
  });
});

describe('the timeout of the lock', () => {
  it('ends the lock of a holder that hangs, so that the next one gets it', async () => {
    const hung = await theirs.acquire('printer', TIMEOUT);
    const next = await mine.acquire('printer', { wait: '20s' });
    expect({ hung: hung.isHeld, next: next.isHeld }).toEqual({ hung: false, next: true });
    expect(next.fencingToken).toBeGreaterThan(hung.fencingToken);
    expect(hung.signal.reason).toBeInstanceOf(LockLostError);
  });

  it('can be begun anew by the holder', async () => {
    const lock = await mine.acquire('printer', { ttl: '5s', autoExtend: false });
    await lock.extend('30s');
    expect(lock.remainingMs).toBeGreaterThan(6_000);
    expect(await theirs.tryAcquire('printer')).toBeNull();
    expect(await lock.release()).toBe(true);
  });
});

describe('the release', () => {
  it('says that the lock was held to the end, and says it again', async () => {
    const lock = await mine.acquire('printer', { ttl: '20s', autoExtend: false });
    expect([await lock.release(), await lock.release()]).toEqual([true, true]);
  });

  it('says that the lock had been lost, and leaves the lock of the next one alone', async () => {
    const lost = await mine.acquire('printer', TIMEOUT);
    const next = await theirs.acquire('printer', { wait: '20s' });
    expect(await lost.release()).toBe(false);
    await next.extend(); // asks the server
    expect(await next.release()).toBe(true);
  });
});

describe('the scope', () => {
  it('is the code of docs/recipes.md: the next call gets the lock of one that hangs', async () => {
    const hung = print(mine, aborted);
    const refused = expect(hung).rejects.toThrow(LockLostError);
    await eventually(async () => (await server.command('EXISTS', 'lock:printer')) === 1);
    let printed = 0;
    await print(theirs, () => Promise.resolve(void (printed += 1)));
    await refused;
    expect(printed).toBe(1);
  });

  it('rejects at its end when the timeout has ended the lock, although the work went through', async () => {
    let worked = false;
    const scope = mine.run('printer', TIMEOUT, async ({ signal }) => {
      await aborted(signal);
      worked = true;
      return 'printed';
    });
    await expect(scope).rejects.toThrow(LockLostError);
    await expect(scope).rejects.toMatchObject({ reason: 'expired' });
    expect(worked).toBe(true);
  });

  it('rejects when somebody else took the lock away in the middle', async () => {
    const scope = mine.run('printer', { ttl: '3s' }, async ({ signal }) => {
      await theirs.forceRelease('printer');
      await aborted(signal); // when a message arrives, or at its next renewal
    });
    const reason: unknown = expect.stringMatching(/^(force-released|released-elsewhere)$/);
    await expect(scope).rejects.toMatchObject({ reason });
  });

  it('lets an error of the work through, which has the loss as its cause', async () => {
    const scope = mine.run('printer', TIMEOUT, async ({ signal }) => {
      await aborted(signal);
      throw new RangeError('no paper');
    });
    await expect(scope).rejects.toMatchObject({
      message: 'no paper',
      cause: expect.any(LockLostError),
    });
  });

  it('written with "await using", raises where the work asks whether it still has the lock', async () => {
    const print = async (): Promise<string> => {
      await using lock = await mine.acquire('printer', TIMEOUT);
      await aborted(lock.signal);
      lock.assertHeld();
      return 'printed';
    };
    await expect(print()).rejects.toThrow(LockLostError);
  });
});
