import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { LockNotAcquiredError, WithLock, type LockService } from 'nestjs-holdfast';
import { eventually } from '../../support/eventually.js';
import { RedisServer } from '../../support/redis-server.js';
import { writeReport } from './known-ways.js';
import { Services } from './services.js';

let server: RedisServer;
let mine: LockService;
let theirs: LockService;
const services = new Services();

beforeAll(async () => {
  server = await RedisServer.start();
});

beforeEach(async () => {
  await server.command('FLUSHALL');
  [mine, theirs] = await Promise.all([services.open(server.url), services.open(server.url)]);
});

afterEach(() => services.closeAll());

afterAll(() => server.stop());

/** Notes each run. */
class Reports {
  runs = 0;

  @WithLock('report', { onLocked: 'skip' })
  async write(): Promise<string | undefined> {
    this.runs += 1;
    return 'written';
  }
}

describe('the call that does not wait', () => {
  it('says that it did not run, at once and without running, while somebody else has the lock', async () => {
    await using _held = await theirs.acquire('report', { ttl: '20s' });
    let runs = 0;
    const since = performance.now();
    const answer = await mine.tryRun('report', () => (runs += 1));
    expect(performance.now() - since).toBeLessThan(5_000);
    expect(answer).toEqual({ acquired: false, retryAfterMs: expect.any(Number) });
    expect(runs).toBe(0);
    const { retryAfterMs = 0 } = answer as { retryAfterMs?: number };
    expect(retryAfterMs).toBeGreaterThan(0);
    expect(retryAfterMs).toBeLessThanOrEqual(20_000);
  });

  it('is the code of docs/recipes.md, and says when to try again', async () => {
    let runs = 0;
    const work = (): Promise<void> => Promise.resolve(void (runs += 1));
    const held = await theirs.acquire('report');
    expect(await writeReport(mine, work)).toMatch(/^try again in \d+ ms$/);
    await held.release();
    expect(await writeReport(mine, work)).toBe('written');
    expect(runs).toBe(1);
  });

  it('tells a run that gave nothing from none', async () => {
    expect(await mine.tryRun('report', () => undefined)).toEqual({
      acquired: true,
      value: undefined,
    });
  });

  it('does not take a failure of the work for a lock that is held', async () => {
    const failing = mine.tryRun('report', () => {
      throw new RangeError('no paper');
    });
    await expect(failing).rejects.toThrow(RangeError);
    expect(await theirs.inspect('report')).toEqual({ held: false });
  });

  it('answers nothing in the place of a decorated method, and does not run it', async () => {
    const reports = mine.bind(new Reports());
    const held = await theirs.acquire('report');
    expect(await reports.write()).toBeUndefined();
    expect(reports.runs).toBe(0);
    await held.release();
    expect(await reports.write()).toBe('written');
    expect(reports.runs).toBe(1);
  });
});

describe('the call that waits', () => {
  it('runs when its turn comes, and gives the value back', async () => {
    const held = await theirs.acquire('report');
    const waiting = mine.run('report', { wait: '20s' }, () => 'written');
    await eventually(async () => (await server.command('ZCARD', '{lock:report}:queue')) === 1);
    await held.release();
    expect(await waiting).toBe('written');
  });

  it('rejects when its wait is over, without having run', async () => {
    await using _held = await theirs.acquire('report');
    let runs = 0;
    const waiting = mine.run('report', { wait: '200ms' }, () => (runs += 1));
    await expect(waiting).rejects.toThrow(LockNotAcquiredError);
    expect(runs).toBe(0);
  });
});
