import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { setImmediate } from 'node:timers/promises';
import type { BrowserContextOptions, Locator, Page } from 'playwright-core';
import { ExplorerWorld } from '../../techniques/simulation/explorer/explorer-world.js';
import { SCENARIOS } from '../../techniques/simulation/explorer/scenarios.js';
import { BuiltSite, PATIENCE_MS, violationsIn, widthsOf } from './built-site.js';

let site: BuiltSite;

beforeAll(async () => {
  site = await BuiltSite.start();
}, PATIENCE_MS);

afterAll(() => site.stop());

async function open(scenario: string, options: BrowserContextOptions = {}): Promise<Page> {
  // Nobody waits for time: with this setting the page shows the end of a world at once.
  const page = await site.open(`explorer#scenario=${scenario}`, {
    reducedMotion: 'reduce',
    ...options,
  });
  await page.getByText('The end, after').waitFor();
  return page;
}

/** What is drawn of a kind: the attributes of each, from the left. */
async function drawn(page: Page, kind: string): Promise<readonly Record<string, string>[]> {
  const shapes: Locator = page.locator(`svg [data-kind="${kind}"]`);
  return shapes.evaluateAll((elements) =>
    elements
      .map((element) => ({
        ...(element as unknown as { dataset: Record<string, string> }).dataset,
      }))
      .sort((one, other) => Number(one.from ?? one.at) - Number(other.from ?? other.at)),
  );
}

describe('the explorer in a browser', () => {
  it.each(SCENARIOS)(
    'shows $name as Node plays it',
    async ({ name, setup, steps, lengthMs }) => {
      const page = await open(name);
      const world = new ExplorerWorld(setup, steps, () => setImmediate());
      await world.playTo(lengthMs);
      const granted = world.facts.filter((fact) => fact.type === 'granted');
      const held = await drawn(page, 'holds');
      expect(held.map(({ process, token }) => [process, token])).toEqual(
        granted.map(({ process, token }) => [`p${String(process)}`, String(token)]),
      );
      expect(site.complaints).toEqual([]);
      await page.close();
    },
    PATIENCE_MS,
  );

  it(
    'hands the lock over in the line',
    async () => {
      const page = await open('hand-over');
      const held = await drawn(page, 'holds');
      expect(held.map(({ process }) => process)).toEqual(['p0', 'p1', 'p2', 'p3']);
      for (const [index, { token, from }] of held.slice(1).entries()) {
        expect(Number(token)).toBeGreaterThan(Number(held[index]!.token));
        expect(Number(from)).toBeGreaterThanOrEqual(Number(held[index]!.to));
      }
      const said = await drawn(page, 'says');
      expect(said.map(({ holders }) => holders)).toEqual(['p0', 'p1', 'p2', 'p3']);
      for (const [index, { from }] of said.slice(1).entries()) expect(from).toBe(said[index]!.to);
      expect(await drawn(page, 'accepted')).toHaveLength(4);
      expect(site.complaints).toEqual([]);
      await page.close();
    },
    PATIENCE_MS,
  );

  it(
    'shows that a paused holder writes too late, and goes the same way twice',
    async () => {
      const page = await open('holder-paused');
      const [first, second] = await drawn(page, 'holds');
      const [over] = await drawn(page, 'over');
      const [paused] = await drawn(page, 'paused');
      expect(Number(second!.from)).toBeGreaterThan(Number(first!.to));
      expect(Number(second!.token)).toBeGreaterThan(Number(first!.token));
      expect(over).toMatchObject({ process: 'p0', from: first!.to, to: paused!.to });
      const refused = await drawn(page, 'refused');
      expect(refused).toMatchObject([{ process: 'p0', token: first!.token }]);
      await page.getByText('The database refuses the late write of p0').waitFor();

      const svg = await page.locator('.timeline svg').innerHTML();
      await page.getByRole('button', { name: 'Start again' }).click();
      await page.getByText('The end, after').waitFor();
      expect(await page.locator('.timeline svg').innerHTML()).toBe(svg);
      expect(site.complaints).toEqual([]);
      await page.close();
    },
    PATIENCE_MS,
  );

  it(
    'does what its reader wants, by keyboard',
    async () => {
      const page = await open('own');
      const p0 = page.getByRole('group', { name: 'p0' });
      const before = await page.locator('.explorer').getAttribute('data-shown');
      await p0.getByRole('button', { name: 'Lock', exact: true }).press('Enter');
      await page
        .locator('svg [data-kind="holds"][data-process="p0"]')
        .waitFor({ state: 'attached' });
      await p0.getByRole('button', { name: 'Kill' }).press('Space');
      await page.locator('svg [data-kind="dead"][data-lane="p0"]').waitFor({ state: 'attached' });
      const after = await page.locator('.explorer').getAttribute('data-shown');
      expect(Number(after)).toBeGreaterThan(Number(before));
      expect(site.complaints).toEqual([]);
      await page.close();
    },
    PATIENCE_MS,
  );

  it.each(['light', 'dark'] as const)(
    'shows the picture before any text, and can be used by everybody, also on a small screen (%s)',
    async (colorScheme) => {
      const page = await open('majority-cut', {
        colorScheme,
        viewport: { width: 390, height: 800 },
      });
      expect(await violationsIn(page, '.explorer')).toEqual([]);
      const [whole, window] = await widthsOf(page);
      const { y } = (await page.locator('.timeline').boundingBox())!;
      const texts = await page.locator('.vp-doc p, .legend').all();
      for (const text of texts) expect((await text.boundingBox())!.y).toBeGreaterThan(y);
      expect(y).toBeLessThan(300);
      expect(whole).toBeLessThanOrEqual(window);
      await page.close();
    },
    PATIENCE_MS,
  );
});
