import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { LockStoreUnavailableError, type LockService } from 'nestjs-holdfast';
import { eventually } from '../../support/eventually.js';
import { RedisServer } from '../../support/redis-server.js';
import { charge } from './known-ways.js';
import { Services } from './services.js';

let masters: RedisServer[] = [];
let mine: LockService;
let theirs: LockService;
const services = new Services();

beforeAll(async () => {
  Logger.overrideLogger(false); // masters that are gone are the subject here
  masters = await Promise.all([1, 2, 3].map(() => RedisServer.start()));
}, 60_000);

beforeEach(async () => {
  for (const master of masters) {
    if (master.isRunning) await master.command('FLUSHALL');
    else await master.restart();
  }
  const urls = masters.map(({ url }) => url);
  [mine, theirs] = await Promise.all([services.open(urls), services.open(urls)]);
});

afterEach(() => services.closeAll());

afterAll(async () => {
  await Promise.all(masters.map((master) => master.stop()));
  Logger.overrideLogger(['log', 'warn', 'error']);
}, 60_000);

const owners = (): Promise<readonly unknown[]> =>
  Promise.all(masters.map((master) => master.command('GET', 'lock:order:1')));

describe('a lock on three independent masters', () => {
  it('is one token on all of them, and on none after the release', async () => {
    const lock = await mine.acquire('order:1');
    // A majority is enough to begin; the third answers when it does.
    const tokens = await eventually(async () => {
      const found = await owners();
      return found.includes(null) ? null : found;
    });
    expect(new Set(tokens).size).toBe(1);
    await lock.release();
    await eventually(async () => (await owners()).every((owner) => owner === null));
  });

  it('excludes others with one master dead, also when it died while the lock was held', async () => {
    const [first] = masters;
    await mine.run('order:1', { ttl: '2s' }, async (lock) => {
      await first!.kill();
      expect(await theirs.tryAcquire('order:1')).toBeNull();
      await lock.extend();
    });
    const next = await theirs.acquire('order:1');
    expect(await mine.tryAcquire('order:1')).toBeNull();
    expect(await next.release()).toBe(true);
  });

  it('is granted to nobody with two masters dead, and nothing runs', async () => {
    await Promise.all(masters.slice(1).map((master) => master.kill()));
    let runs = 0;
    const work = (): number => (runs += 1);
    const refused = await mine.tryRun('order:1', work).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(LockStoreUnavailableError);
    expect(runs).toBe(0);
  });

  it('is charged under with one master dead, and not with two: the code of docs/recipes.md', async () => {
    const [, second, third] = masters;
    let charged = 0;
    const work = (): Promise<void> => Promise.resolve(void (charged += 1));
    await second!.kill();
    expect(await charge(mine, '1', work)).toBe('charged');
    await third!.kill();
    expect(await charge(theirs, '1', work)).toBe('two masters are down: try again later');
    expect(charged).toBe(1);
  });

  it('is not granted by a minority, and what the minority granted is given back', async () => {
    for (const master of masters.slice(0, 2))
      await master.command('SET', 'lock:order:1', 'of somebody else', 'PX', 20_000);
    expect(await mine.tryAcquire('order:1')).toBeNull();
    await eventually(async () => (await owners())[2] === null);
    expect((await owners()).slice(0, 2)).toEqual(['of somebody else', 'of somebody else']);
  });

  it('has fencing tokens that grow, whichever majority grants it', async () => {
    const tokens: number[] = [];
    for (const locks of [mine, theirs, mine]) {
      await locks.run('order:1', ({ fencingToken }) => tokens.push(fencingToken));
    }
    await masters[0]!.restart(); // comes back empty
    await eventually(async () => (await mine.health()).nodes.every(({ reachable }) => reachable));
    await mine.run('order:1', ({ fencingToken }) => tokens.push(fencingToken));
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
  });
});
