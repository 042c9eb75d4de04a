import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { NonRetryableError } from 'nestjs-holdfast';
import { ChildScript } from '../../support/child-script.js';
import { deferred, eventually } from '../../support/eventually.js';
import { RedisServer } from '../../support/redis-server.js';
import { importOnce } from './known-ways.js';
import { recipesOf } from './recipe-pages.js';
import { Services } from './services.js';

const PROCESS = new URL('backup-process.ts', import.meta.url);
/** Processes take their time to start. */
const PATIENCE = { withinMs: 30_000 };

interface Told {
  readonly name: string;
  readonly event: 'acquired' | 'exhausted' | 'over';
  readonly attempt?: number;
  readonly last?: boolean;
}

let server: RedisServer;
const services = new Services();
const children: ChildScript[] = [];

beforeAll(async () => {
  server = await RedisServer.start();
});

beforeEach(() => server.command('FLUSHALL'));

afterEach(async () => {
  await Promise.all(children.splice(0).map((child) => child.kill()));
  await services.closeAll();
});

afterAll(() => server.stop());

function start(name: string, how: 'work' | 'fail' | 'hang'): ChildScript {
  const child = new ChildScript(PROCESS, [server.url, name, how]);
  children.push(child);
  return child;
}

async function told(event: Told['event']): Promise<readonly Told[]> {
  const entries = (await server.command('LRANGE', 'events', 0, -1)) as string[];
  return entries.map((entry) => JSON.parse(entry) as Told).filter((entry) => entry.event === event);
}

const inLine = (count: number): Promise<unknown> =>
  eventually(
    async () => (await server.command('ZCARD', '{lock:import}:queue')) === count,
    PATIENCE,
  );

describe('a primary with backups in processes of their own', () => {
  it('is replaced by one backup when it is killed, and the other backup never starts', async () => {
    const primary = start('primary', 'hang');
    await eventually(async () => (await told('acquired')).length === 1, PATIENCE);
    const backups = [start('backup', 'work'), start('spare', 'work')];
    await inLine(2);

    await primary.kill();
    await Promise.all(backups.map(({ output }) => output));

    expect(await told('acquired')).toEqual([
      { name: 'primary', event: 'acquired', attempt: 1, last: false },
      { name: expect.stringMatching(/backup|spare/), event: 'acquired', attempt: 2, last: false },
    ]);
    expect(await told('exhausted')).toEqual([]);
  }, 60_000);

  it('fail over at once, and stop all when the last of their attempts has failed', async () => {
    const all = ['a', 'b', 'c', 'd'].map((name) => start(name, 'fail'));
    await Promise.all(all.map(({ output }) => output));

    expect((await told('acquired')).map(({ attempt, last }) => ({ attempt, last }))).toEqual([
      { attempt: 1, last: false },
      { attempt: 2, last: false },
      { attempt: 3, last: true },
    ]);
    expect(await told('over')).toHaveLength(4);
    expect((await told('exhausted')).length).toBeGreaterThan(0);
  }, 60_000);
});

describe('the same by runOnce', () => {
  it('is the code of docs/recipes.md', () => {
    expect(recipesOf('known-ways.ts')).toEqual({ shown: 4, missing: [] });
  });

  it('lets a backup take over when the work has failed, and tells a late caller that it is done', async () => {
    const [primary, backup] = await Promise.all([1, 2].map(() => services.open(server.url)));
    const [atWork, mayEnd] = [deferred(), deferred()];
    const first = importOnce(primary!, async () => {
      atWork.resolve();
      await mayEnd.promise;
      throw new Error('no luck');
    });
    await atWork.promise;
    let done = 0;
    const work = (): Promise<void> => Promise.resolve(void (done += 1));
    const second = importOnce(backup!, work);
    await inLine(1);
    mayEnd.resolve();

    await expect(first).rejects.toThrow('no luck');
    expect(await second).toBe('completed');
    expect(await importOnce(primary!, work)).toBe('done-elsewhere');
    expect(done).toBe(1);
  });

  it('ends for all callers when the attempts are used up', async () => {
    const locks = await services.open(server.url);
    const work = (): Promise<void> => Promise.reject(new Error('no luck'));
    for (let attempt = 1; attempt <= 3; attempt += 1)
      await expect(importOnce(locks, work)).rejects.toThrow('no luck');
    expect(await importOnce(locks, work)).toBe('exhausted');
  });

  it('tells each caller how it ended: one has done it, the others need not', async () => {
    const [primary, backup, late] = await Promise.all(
      [1, 2, 3].map(() => services.open(server.url)),
    );
    const [atWork, mayEnd] = [deferred(), deferred()];
    let done = 0;
    const work = async (): Promise<number> => {
      atWork.resolve();
      await mayEnd.promise;
      return (done += 1);
    };
    const first = primary!.runOnce('import', { attempts: 3 }, work);
    await atWork.promise;
    const second = backup!.runOnce('import', { attempts: 3 }, work);
    await inLine(1);
    mayEnd.resolve();

    expect(await first).toEqual({ outcome: 'completed', attempts: 1, value: 1 });
    expect(await second).toMatchObject({ outcome: 'done-elsewhere', attempts: 1 });
    const third = await late!.runOnce('import', { attempts: 3 }, work);
    expect(third).toMatchObject({ outcome: 'done-elsewhere', attempts: 1 });
    expect(done).toBe(1);
  });

  it('does not go through the attempts of work that cannot succeed', async () => {
    const [primary, backup] = await Promise.all([1, 2].map(() => services.open(server.url)));
    const hopeless = (): never => {
      throw new NonRetryableError('the file is no CSV');
    };
    await expect(primary!.runOnce('import', { attempts: 3 }, hopeless)).rejects.toThrow('no CSV');
    const answer = await backup!.runOnce('import', { attempts: 3 }, hopeless);
    expect(answer).toEqual({ outcome: 'exhausted', attempts: 1, lastError: 'the file is no CSV' });
  });
});
