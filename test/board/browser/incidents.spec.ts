/**
 * Three incidents, each solved twice: from the page alone, and from the command line alone. What is typed and clicked is what the page
 * and the program say.
 */
import { describe, expect, it } from '@jest/globals';
import { LockBoardModule } from '@nestjs-holdfast/board';
import type { Page } from 'playwright-core';
import { program } from '../../cli/program.js';
import { startHttpApp } from '../../nest/http-app.js';
import { eventually } from '../../support/eventually.js';
import { RedisServer } from '../../support/redis-server.js';
import type { Program } from '../../claims/sample/program.js';
import { findingsIn, picture, Stage, timed } from './browser.js';

const KEY = 'order:42';

const PATIENT = { withinMs: 60_000 };

const stage = new Stage((redis) =>
  startHttpApp(
    { imports: [LockBoardModule.forRoot({ unguarded: true, user: () => 'mia@example.com' })] },
    { options: { redis: redis.url, instance: { application: 'shop' } } },
  ),
);

const cli = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await program(args, { REDIS_URL: stage.redis.url });
  if (code === null || code > 4) throw new Error(`${args.join(' ')}: ${String(code)} ${stderr}`);
  return stdout + stderr;
};

/** Whether it is seen without scrolling. */
const isOnFirstScreen = async (page: Page, text: string): Promise<boolean> => {
  const box = await page.getByRole('link', { name: text, exact: true }).first().boundingBox();
  return box !== null && box.y + box.height <= page.viewportSize()!.height;
};

describe('a frozen holder among 20,000 keys and 5,000 callers', () => {
  interface Crowd {
    readonly holder: Program;
    readonly busy: Program;
    readonly blocked: Program;
  }

  async function crowd(): Promise<Crowd> {
    const script = 'test/board/browser/crowd.ts';
    const busy = stage.start(script, { HOLDS: '20000', APPLICATION: 'warehouse' });
    await busy.says(/ready/);
    const waiting = stage.start(script, { WAITS: '5000', APPLICATION: 'pickers' });
    await waiting.says(/ready/);
    const holder = await stage.frozenHolder();
    const blocked = stage.start(script, { WAITS: '10', FOR: KEY, APPLICATION: 'checkout' });
    await blocked.says(/ready/);
    return { holder, busy, blocked };
  }

  /** Who was to lose the lock lost it, nobody else did, and the next in line has it. */
  async function expectSolved({ holder, busy, blocked }: Crowd): Promise<void> {
    await blocked.says(/granted order:42/);
    expect(busy.output).not.toContain('lost');
    expect(blocked.output).not.toContain('lost');
    holder.signal('SIGCONT');
    const [told] = await holder.says(/lost: .*/);
    expect(told).toContain('frozen since 3 am');
  }

  it('is on the first screen of the page at every look, and is released there', async () => {
    const there = await crowd();
    const page = await stage.open();
    const first = page.getByRole('table', { name: 'Look at these first' });
    for (let looks = 0; looks < 8; looks += 1) {
      await page.reload();
      const row = first.getByRole('row').nth(1);
      await row.getByText('unresponsive').waitFor();
      await row.getByRole('link', { name: KEY, exact: true }).waitFor();
      expect(await isOnFirstScreen(page, KEY)).toBe(true);
    }
    await first.getByText('10 callers in 1 process').waitFor();
    await page.getByRole('heading', { name: '20001 held' }).waitFor();
    expect(await findingsIn(page)).toEqual([]);
    await picture(page, 'incident-frozen');
    await timed('frozen holder, page: from opening it to the next holder', async () => {
      await page.reload();
      await first.getByRole('link', { name: KEY, exact: true }).click();
      const held = page.getByRole('region', { name: 'Held by' });
      await held.getByText('kill -9').waitFor();
      await page.getByRole('button', { name: 'Release…' }).click();
      await page.getByLabel('Reason').fill('frozen since 3 am');
      await page.keyboard.press('Enter');
      await page.getByText(`Released ${KEY}.`).waitFor();
      await there.blocked.says(/granted order:42/);
    });
    await expectSolved(there);
    expect(stage.complaints).toEqual([]);
  }, 180_000);

  it('is found and released with the command line', async () => {
    const there = await crowd();
    // A process counts as unresponsive when it has not reported for 15 s.
    await eventually(async () => (await cli('list', '--unresponsive')).includes(KEY), PATIENT);
    await timed('frozen holder, command line: from list to the next holder', async () => {
      expect(await cli('list', '--unresponsive')).toContain(KEY);
      const shown = await cli('show', KEY);
      const [, id = ''] = /--if-holder (\S+)/.exec(shown) ?? [];
      const release = ['release', KEY, '--if-holder', id];
      expect(await cli(...release, '-n')).toContain(KEY);
      expect(there.blocked.output).not.toContain('granted');
      await cli(...release, '--reason', 'frozen since 3 am', '--yes');
      await there.blocked.says(/granted order:42/);
    });
    await expectSolved(there);
  }, 180_000);
});

describe('the memory of Redis is full', () => {
  async function fill(): Promise<void> {
    const { redis } = stage;
    await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');
    await stage.shop.locks.acquire('a').catch(() => undefined);
  }
  const remedy = () => stage.redis.command('CONFIG', 'SET', 'maxmemory', '0');

  it('is said by the page, with what to do, and that it is over', async () => {
    const page = await stage.open();
    await page.getByText('Locks are granted').waitFor();
    await fill();
    const alert = page.getByRole('alert');
    await timed('memory full, page: until it says so', () =>
      alert.getByText('Locks are refused').waitFor(),
    );
    await alert.getByText(/^since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/).waitFor();
    await alert.getByText('OOM').waitFor();
    await alert.getByText('raise "maxmemory"').waitFor();
    const section = await alert.getByRole('link', { name: 'What to do' }).getAttribute('href');
    expect(section).toMatch(/operations\.md#memory-is-full$/);
    expect(await findingsIn(page)).toEqual([]);
    await picture(page, 'incident-memory');
    await remedy();
    await page.getByText('Locks are granted').waitFor();
    expect(await (await stage.shop.locks.acquire('a')).release()).toBe(true);
  }, 120_000);

  it('is said by doctor, with what to do', async () => {
    await fill();
    const report = await timed('memory full, command line: doctor', () => cli('doctor'));
    expect(report).toContain('OOM');
    expect(report).toContain('maxmemory');
    await remedy();
    expect(await cli('doctor')).not.toContain('OOM');
  }, 120_000);
});

describe('a fail-over has left the address of a replica', () => {
  const withReplica = async (solve: (master: RedisServer) => Promise<void>): Promise<void> => {
    const master = await RedisServer.start();
    try {
      await stage.redis.command('REPLICAOF', '127.0.0.1', String(master.port));
      await solve(master);
    } finally {
      await master.stop();
    }
  };

  it('is said by the page, with the address of the master', async () => {
    const page = await stage.open();
    await page.getByText('Locks are granted').waitFor();
    await withReplica(async ({ port }) => {
      const alert = page.getByRole('alert');
      await timed('fail-over, page: until it says so', () =>
        alert.getByText('Locks are refused').waitFor(),
      );
      await alert.getByText(`Its master is 127.0.0.1:${port}`).waitFor();
      const section = await alert.getByRole('link', { name: 'What to do' }).getAttribute('href');
      expect(section).toMatch(/operations\.md#after-a-fail-over$/);
      await picture(page, 'incident-replica');
      await stage.redis.command('REPLICAOF', 'NO', 'ONE');
      await page.getByText('Locks are granted').waitFor();
    });
    expect(await (await stage.shop.locks.acquire('a')).release()).toBe(true);
  }, 120_000);

  it('is said by doctor, with the address of the master', async () => {
    await withReplica(async ({ port }) => {
      const report = await timed('fail-over, command line: doctor', () => cli('doctor'));
      expect(report).toContain(`127.0.0.1:${port}`);
      await stage.redis.command('REPLICAOF', 'NO', 'ONE');
      expect(await cli('doctor')).not.toContain('replica of');
    });
  }, 120_000);
});
