import { describe, expect, it } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import { WithLock } from 'nestjs-holdfast';
import { LockBoardModule } from '@nestjs-holdfast/board';
import { startHttpApp } from '../../nest/http-app.js';
import { findingsIn, picture, Stage, WIDTHS } from './browser.js';

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

const stage = new Stage((redis) =>
  startHttpApp(
    {
      imports: [
        OrdersModule,
        LockBoardModule.forRoot({ unguarded: true, user: () => 'mia@example.com' }),
      ],
    },
    { options: { redis: redis.url, instance: { application: 'shop' } } },
  ),
);

describe('the page in a browser', () => {
  it('frees a key whose holder is frozen', async () => {
    const holder = await stage.frozenHolder();
    const orders = stage.shop.app.get(OrdersService, { strict: false });
    const paid = orders.pay('42');

    const page = await stage.open();
    const first = page.getByRole('table', { name: 'Look at these first' });
    const row = first.getByRole('row').filter({ hasText: KEY });
    await row.getByText('1 caller in 1 process').waitFor();
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
    expect(stage.complaints).toEqual([]);
  }, 120_000);

  it('can be used with the keyboard alone', async () => {
    await stage.shop.locks.acquire('b:1');
    const lock = await stage.shop.locks.acquire('a:1');
    const page = await stage.open();
    await page.getByRole('rowheader').nth(1).waitFor();
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
    await page.getByRole('row').nth(1).getByRole('link', { name: 'a:1' }).waitFor();
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
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
    expect(await findingsIn(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await page.keyboard.press('u');
    await page.getByText('There is no such key.').waitFor();
    await page.keyboard.press('a');
    await page.getByRole('rowheader').waitFor();
    await page.keyboard.press('/');
    expect(await page.evaluate<string>('document.activeElement.type')).toBe('search');
    expect(stage.complaints).toEqual([]);
  }, 120_000);

  it('finds keys, and shows those that are long or hostile as they are', async () => {
    await stage.shop.locks.acquire('a:1');
    await stage.shop.locks.acquire(LONG.slice(0, 700));
    await stage.shop.locks.acquire('quote:"\'&amp;%2F#é');
    const page = await stage.open(`#key=${encodeURIComponent(HOSTILE)}`, { width: 390 });
    await page.getByRole('heading', { name: HOSTILE }).waitFor();
    await page.getByText('"<"').waitFor();
    await page.getByRole('link', { name: 'All keys' }).click();
    await page.getByRole('link', { name: LONG.slice(0, 700) }).waitFor();
    const width = await page.evaluate<number>('document.documentElement.scrollWidth');
    expect(width).toBeLessThanOrEqual(390);
    await page.getByRole('searchbox').fill('quote');
    await page.getByRole('link', { name: 'a:1' }).waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'quote:' }).click();
    await page.getByRole('heading', { name: 'quote:"\'&amp;%2F#é' }).waitFor();
    await page.getByRole('region', { name: 'Held by' }).getByText('shop').waitFor();
    expect(stage.complaints).toEqual([]);
  }, 120_000);

  it('shows who leads, who reads, a writer that waits and a lock that was detached', async () => {
    const { locks } = stage.shop;
    const reader = await locks.acquire('stock', { mode: 'shared' });
    const writing = locks.acquire('stock', { wait: '2m' });
    await (await locks.acquire('report')).detach({ ttl: '2m' });
    await new Promise((elected) => locks.lead('mailbox', { onElected: elected }));

    const page = await stage.open();
    const keys = page.getByRole('table', { name: 'Keys' });
    const row = (key: string) => keys.getByRole('row').filter({ hasText: key });
    await row('stock').getByText('shared').waitFor();
    await row('stock').getByText('1 caller in 1 process').waitFor();
    await row('mailbox').getByText('leader').waitFor();
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
    expect(stage.complaints).toEqual([]);
  }, 120_000);

  it('says within 5 s that the application is frozen or gone, how old is what it shows, and goes on', async () => {
    await stage.shop.locks.acquire('a:1');
    const page = await stage.open();
    await page.getByText('Locks are granted').waitFor();
    await page.getByRole('rowheader').waitFor();
    await page.route('**/api/stream*', (route) => route.fulfill({ status: 503 }));
    await page.getByRole('searchbox').fill('a'); // which opens another stream
    await page.getByRole('alert').getByText('The application does not answer').waitFor();
    await page.getByText(/^What you see is \d+ s old/).waitFor();
    await page.unroute('**/api/stream*');
    await page.getByText('Locks are granted').waitFor();
  }, 120_000);

  it('keeps the focus in the table when a row goes away', async () => {
    const locks = [await stage.shop.locks.acquire('a:1'), await stage.shop.locks.acquire('a:2')];
    const page = await stage.open('#sort=key');
    await page.getByRole('link', { name: 'a:1' }).focus();
    await locks[0]!.release();
    await page.getByRole('link', { name: 'a:1' }).waitFor({ state: 'detached' });
    expect(await page.evaluate<string>('document.activeElement.textContent')).toBe('a:2');
  }, 120_000);

  it('releases several keys for one reason, and none that another holder has by now', async () => {
    const { locks } = stage.shop;
    const held = await Promise.all(['a:1', 'a:2', 'a:3'].map((key) => locks.acquire(key)));
    const page = await stage.open('#sort=key');
    for (const key of ['a:1', 'a:2', 'a:3']) await page.getByLabel(`Choose ${key}`).check();
    await held[2]!.release();
    const later = await locks.acquire('a:3');
    await page.getByRole('button', { name: 'Release 3…' }).click();
    await page.getByLabel('Reason').fill('a bad deploy');
    await page.keyboard.press('Enter');
    await page
      .getByText('Released 2 keys. Not done, because another holder has the key now: a:3.')
      .waitFor();
    expect(held.slice(0, 2).every(({ signal }) => signal.aborted)).toBe(true);
    expect(later.isHeld).toBe(true);
    await page.getByRole('link', { name: 'Interventions' }).click();
    await page.getByText('a bad deploy').nth(1).waitFor();
    expect(stage.complaints).toEqual([]);
  }, 120_000);

  describe.each(['light', 'dark'] as const)('%s', (colorScheme) => {
    it('has nothing that axe would change, at any width', async () => {
      await stage.frozenHolder();
      const orders = stage.shop.app.get(OrdersService, { strict: false });
      const paid = orders.pay('42');
      await stage.shop.locks.runOnce('report:1', () => undefined);
      await stage.shop.locks.acquire('limited', { limit: 3 });

      const page = await stage.open('', { colorScheme });
      await page.getByText('unresponsive').first().waitFor();
      const holder = page.getByRole('link', { name: 'billing' }).first();
      const instance = (await holder.getAttribute('href'))!.split('#')[1]!;

      const views = [
        ['all', '', page.getByRole('rowheader').first()],
        ['work', '#key=report%3A1', page.getByRole('button', { name: 'Forget…' })],
        ['key', `#key=${encodeURIComponent(KEY)}`, page.getByText('kill -9').first()],
        ['instance', `#${instance}`, page.getByText('kill -9').first()],
        ['audit', '#audit=all', page.getByRole('heading', { name: 'What operators did' })],
      ] as const;
      for (const [size, width] of Object.entries(WIDTHS)) {
        await page.setViewportSize({ width, height: 800 });
        for (const [name, fragment, sign] of views) {
          await page.goto(`${stage.shop.url}/locks${fragment}`);
          await sign.waitFor();
          expect([name, size, await findingsIn(page)]).toEqual([name, size, []]);
          const across = await page.evaluate<number>('document.documentElement.scrollWidth');
          expect([name, size, across]).toEqual([name, size, width]);
          await picture(page, `${name}-${size}-${colorScheme}`);
        }
      }

      await page.goto(`${stage.shop.url}/locks#key=${encodeURIComponent(KEY)}`);
      await page.getByRole('button', { name: 'Release…' }).click();
      await page.getByLabel('Reason').fill('frozen');
      expect(await findingsIn(page)).toEqual([]);
      await page.keyboard.press('Enter');
      await page.getByText(`Released ${KEY}.`).waitFor();
      expect(await findingsIn(page)).toEqual([]);
      await paid;

      await stage.redis.kill();
      await page.goto(`${stage.shop.url}/locks`);
      await page.getByRole('alert').waitFor();
      expect(await findingsIn(page)).toEqual([]);
      await picture(page, `outage-${colorScheme}`);
    }, 180_000);
  });
});
