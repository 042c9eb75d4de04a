import { createRequire } from 'node:module';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import type { AxeResults } from 'axe-core';
import { WithLock } from 'nestjs-holdfast';
import { LockBoardModule } from '@nestjs-holdfast/board';
import { chromium, type Browser, type Page } from 'playwright-core';
import { closeHttpApps, startHttpApp, type HttpApp } from '../../nest/http-app.js';
import { Program } from '../../claims/sample/program.js';
import { RedisServer } from '../../support/redis-server.js';

const { source: axeSource } = createRequire(import.meta.url)('axe-core') as { source: string };

/** A page has this long to show what it should: the machine may be busy. */
const PATIENCE_MS = 30_000;

const KEY = 'order:42';
const HOSTILE = '<img src=x onerror="alert(1)">&amp;\'"%2F#é';
const LONG = `tenant:${'a-very-long-name-'.repeat(40)}`;

@Injectable()
class OrdersService {
  @WithLock('order:<orderId>', { wait: '2m' })
  async pay(orderId: string): Promise<string> {
    return `paid ${orderId}`;
  }
}

@Module({ providers: [OrdersService], exports: [OrdersService] })
class OrdersModule {}

let browser: Browser;
let redis: RedisServer;
let shop: HttpApp;
const holders: Program[] = [];
/** What the page complained of: scripts that failed, files that the CSP refused. */
let complaints: string[];

beforeAll(async () => {
  browser = await chromium.launch({
    ...(process.env.CHROMIUM_BIN !== undefined && { executablePath: process.env.CHROMIUM_BIN }),
    args: ['--no-sandbox'],
  });
}, 60_000);

afterAll(async () => {
  await browser.close();
});

beforeEach(async () => {
  redis = await RedisServer.start();
  shop = await startHttpApp(
    {
      imports: [
        OrdersModule,
        LockBoardModule.forRoot({ unguarded: true, user: () => 'mia@example.com' }),
      ],
    },
    { options: { redis: redis.url, instance: { application: 'shop' } } },
  );
  complaints = [];
});

afterEach(async () => {
  await Promise.all(browser.contexts().map((context) => context.close()));
  await Promise.all(holders.splice(0).map((holder) => holder.kill()));
  await closeHttpApps();
  await redis.stop();
});

/** A process that holds the key, and does not move any more. */
async function frozenHolder(): Promise<Program> {
  const holder = new Program('test/board/browser/holder.ts', { REDIS_URL: redis.url });
  holders.push(holder);
  await holder.says(/held/);
  holder.signal('SIGSTOP');
  return holder;
}

async function open(
  fragment = '',
  { colorScheme = 'light', width = 1_200 }: { colorScheme?: 'light' | 'dark'; width?: number } = {},
): Promise<Page> {
  const page = await browser.newPage({ colorScheme, viewport: { width, height: 800 } });
  page.setDefaultTimeout(PATIENCE_MS);
  page.on('console', (message) => complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('dialog', (dialog) => {
    complaints.push(`dialog ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(`${shop.url}/locks${fragment}`);
  await page.getByText('Live', { exact: true }).waitFor();
  return page;
}

/** What axe finds, in a few words. */
async function findingsIn(page: Page): Promise<readonly string[]> {
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate<AxeResults>('axe.run(document, {})');
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

describe('the page in a browser', () => {
  it('frees a key whose holder is frozen', async () => {
    const holder = await frozenHolder();
    const orders = shop.app.get(OrdersService, { strict: false });
    const paid = orders.pay('42');

    const page = await open();
    const row = page.getByRole('row').filter({ hasText: KEY });
    await row.getByText('1 waiting').waitFor({ state: 'attached' });
    await row.getByText('billing').waitFor();
    await row.getByText('unresponsive').waitFor();

    await row.getByRole('link', { name: KEY }).click();
    await page.getByRole('heading', { name: KEY }).waitFor();
    const held = page.getByRole('region', { name: 'Held by' });
    await held.getByText('billing').waitFor();
    await held.getByText('unresponsive').waitFor();
    const line = page.getByRole('region', { name: 'In line' });
    await line.getByText('OrdersService.pay').waitFor();

    await page.getByRole('button', { name: 'Release…' }).click();
    const dialog = page.getByRole('dialog', { name: `Release ${KEY}?` });
    expect(await dialog.getByRole('button', { name: 'Release' }).isDisabled()).toBe(true);
    await dialog.getByLabel('Reason').fill('frozen since 3 am');
    await dialog.getByRole('button', { name: 'Release' }).click();
    await page.getByRole('status').getByText(`Released ${KEY}.`).waitFor();
    expect(await paid).toBe('paid 42');

    const history = page.getByRole('region', { name: 'History' });
    await history.getByText('frozen since 3 am').waitFor();
    await history.getByText('mia@example.com').waitFor();
    await held.getByText('Nobody.').waitFor();

    holder.signal('SIGCONT');
    const [told] = await holder.says(/lost: .*/);
    expect(told).toContain('mia@example.com');
    expect(told).toContain('frozen since 3 am');
    expect(complaints).toEqual([]);
  }, 120_000);

  it('can be used with the keyboard alone', async () => {
    await shop.locks.acquire('b:1');
    const lock = await shop.locks.acquire('a:1');
    const page = await open();
    await page.getByRole('row').nth(2).waitFor();
    const focused = () => page.evaluate<string>("document.activeElement?.textContent ?? ''");
    const tabTo = async (name: string) => {
      for (let presses = 0; (await focused()) !== name; presses += 1) {
        if (presses === 20) throw new Error(`The tab key does not reach "${name}".`);
        await page.keyboard.press('Tab');
      }
    };
    await tabTo('Key');
    await page.keyboard.press('Enter');
    await page
      .getByRole('columnheader', { name: 'Key' })
      .and(page.locator('[aria-sort]'))
      .waitFor();
    expect(await page.getByRole('rowheader').allTextContents()).toEqual(['a:1', 'b:1']);
    await tabTo('a:1');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Release…' }).waitFor();
    expect(await focused()).toBe('a:1'); // the heading: a screen reader says where one is
    await tabTo('Release…');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await focused()).toBe('Release…');
    await page.keyboard.press('Enter');
    await page.getByLabel('Reason').waitFor();
    await page.keyboard.type('by hand');
    await page.keyboard.press('Enter');
    await page.getByText('Released a:1.').waitFor();
    expect(lock.signal.aborted).toBe(true);
    await page.goBack();
    await page.getByRole('heading', { name: '1 held' }).waitFor();
    expect(complaints).toEqual([]);
  }, 120_000);

  it('finds keys, and shows those that are long or hostile as they are', async () => {
    await shop.locks.acquire('a:1');
    await shop.locks.acquire(LONG.slice(0, 700));
    await shop.locks.acquire('quote:"\'&amp;%2F#é');
    const page = await open(`#key=${encodeURIComponent(HOSTILE)}`, { width: 390 });
    await page.getByRole('heading', { name: HOSTILE }).waitFor();
    await page.getByRole('alert').getByText('"<"').waitFor();
    await page.getByRole('link', { name: 'All keys' }).click();
    await page.getByRole('link', { name: LONG.slice(0, 700) }).waitFor();
    const width = await page.evaluate<number>('document.documentElement.scrollWidth');
    expect(width).toBeLessThanOrEqual(390);
    await page.getByRole('searchbox').fill('quote');
    await page.getByRole('link', { name: 'a:1' }).waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'quote:' }).click();
    await page.getByRole('heading', { name: 'quote:"\'&amp;%2F#é' }).waitFor();
    await page.getByRole('region', { name: 'Held by' }).getByText('shop').waitFor();
    expect(complaints).toEqual([]);
  }, 120_000);

  it('shows who leads, who reads, a writer that waits and a lock that was detached', async () => {
    const { locks } = shop;
    const reader = await locks.acquire('stock', { mode: 'shared' });
    const writing = locks.acquire('stock', { wait: '2m' });
    await (await locks.acquire('report')).detach({ ttl: '2m' });
    await new Promise((elected) => locks.lead('mailbox', { onElected: elected }));

    const page = await open();
    const row = (key: string) => page.getByRole('row').filter({ hasText: key });
    await row('stock').getByText('shared').waitFor();
    await row('stock').getByText('1 waiting').waitFor({ state: 'attached' });
    await row('report').getByText('detached').waitFor();
    await row('mailbox').getByText('shop').waitFor();

    await row('stock').getByRole('link', { name: 'stock' }).click();
    const held = page.getByRole('region', { name: 'Held by' });
    const line = page.getByRole('region', { name: 'In line' });
    await line.getByText('shop').waitFor();
    expect(await findingsIn(page)).toEqual([]);
    await reader.release();
    await writing;
    await line.getByText('No caller waits.').waitFor();

    await page.getByRole('link', { name: 'All keys' }).click();
    await row('report').getByRole('link', { name: 'report' }).click();
    await held.getByText('Detached: it waits to be attached').waitFor();
    await held.getByText('unless it is attached').waitFor();
    expect(await findingsIn(page)).toEqual([]);
    expect(complaints).toEqual([]);
  }, 120_000);

  it('says when the connection is lost, and connects again', async () => {
    const page = await open();
    await page.route('**/api/stream*', (route) => route.fulfill({ status: 503 }));
    await page.getByRole('searchbox').fill('x'); // which opens another stream
    await page.getByRole('alert').getByText('Connection lost').waitFor();
    await page.unroute('**/api/stream*');
    await page.getByText('Live', { exact: true }).waitFor();
  }, 120_000);

  describe.each(['light', 'dark'] as const)('%s', (colorScheme) => {
    it('has nothing that axe would change', async () => {
      await frozenHolder();
      const orders = shop.app.get(OrdersService, { strict: false });
      const paid = orders.pay('42');
      await shop.locks.runOnce('report:1', () => undefined);
      await shop.locks.acquire('limited', { limit: 3 });

      const page = await open('', { colorScheme });
      await page.getByText('unresponsive').first().waitFor();
      expect(await findingsIn(page)).toEqual([]);

      for (const width of [1_200, 390]) {
        await page.setViewportSize({ width, height: 800 });
        await page.goto(`${shop.url}/locks#key=report%3A1`);
        await page.getByRole('button', { name: 'Forget…' }).waitFor();
        expect(await findingsIn(page)).toEqual([]);
        await page.goto(`${shop.url}/locks#key=${encodeURIComponent(KEY)}`);
        await page.getByText('unresponsive').waitFor();
        expect(await findingsIn(page)).toEqual([]);
        await page.goto(`${shop.url}/locks`);
        await page.getByRole('rowheader').first().waitFor();
        expect(await findingsIn(page)).toEqual([]);
      }

      await page.goto(`${shop.url}/locks#key=${encodeURIComponent(KEY)}`);
      await page.getByRole('button', { name: 'Release…' }).click();
      await page.getByLabel('Reason').fill('frozen');
      expect(await findingsIn(page)).toEqual([]);
      await page.keyboard.press('Enter');
      await page.getByText(`Released ${KEY}.`).waitFor();
      expect(await findingsIn(page)).toEqual([]);
      await paid;

      await redis.kill();
      await page.goto(`${shop.url}/locks`);
      await page.getByRole('alert').waitFor();
      expect(await findingsIn(page)).toEqual([]);
    }, 180_000);
  });
});
