import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { BuiltSite, PATIENCE_MS, violationsIn, widthsOf } from './built-site.js';

let site: BuiltSite;

beforeAll(async () => {
  site = await BuiltSite.start();
}, PATIENCE_MS);

afterAll(() => site.stop());

interface Drawn {
  readonly images: readonly string[];
  readonly broken: readonly string[];
}

const IMAGES = `({
  images: [...document.images].map(({ src }) => new URL(src).pathname),
  broken: [...document.images].filter((image) => image.naturalWidth === 0).map(({ src }) => src),
})`;

/** What the reader finds on some pages of each kind: the first one, with code, with diagrams, with a table, from the source. */
const PAGES = [
  { path: '', shows: '.landing svg [data-kind="holds"]' },
  { path: 'getting-started', shows: '.vp-doc .shiki' },
  { path: 'internals/diagrams', shows: '.vp-doc .mermaid svg' },
  { path: 'options', shows: '.vp-doc table' },
  { path: 'api/lib/classes/LockService', shows: '.vp-doc h1' },
];

describe('the documentation site in a browser', () => {
  it(
    'leads from the former address of a page to the page, and to the same heading',
    async () => {
      const page = await site.open('protocol#waiting');
      await page.waitForURL(/\/internals\/protocol#waiting$/);
      await page.locator('h2#waiting').waitFor();
      expect(site.complaints).toEqual([]);
      await page.close();
    },
    PATIENCE_MS,
  );

  it.each(PAGES)(
    'shows /$path without an error, a file of another host or a broken picture',
    async ({ path, shows }) => {
      const page = await site.open(path);
      await page.locator(shows).first().waitFor();
      const { images, broken } = await page.evaluate<Drawn>(IMAGES);
      expect(broken).toEqual([]);
      expect(images).toEqual([expect.stringMatching(/\/mark\.svg$/)]);
      expect(site.complaints).toEqual([]);
      await page.close();
    },
    PATIENCE_MS,
  );

  it.each(['light', 'dark'] as const)(
    'has a first page that everybody can read, also on a small screen (%s)',
    async (colorScheme) => {
      const viewport = { width: 390, height: 800 };
      const page = await site.open('', { colorScheme, viewport, reducedMotion: 'reduce' });
      await page.locator('.landing svg').waitFor();
      expect(await violationsIn(page, '.landing')).toEqual([]);
      expect(await widthsOf(page)).toEqual([viewport.width, viewport.width]);
      await page.close();
    },
    PATIENCE_MS,
  );

  it.each(['light', 'dark'] as const)(
    'tells the meaning of a word at its first use, after a tap, until Escape (%s)',
    async (colorScheme) => {
      const viewport = { width: 390, height: 800 };
      const page = await site.open('guarantees', { colorScheme, viewport, hasTouch: true });
      const word = page.locator('.term button', { hasText: 'lease' });
      await word.first().tap();
      const tooltip = page.getByRole('tooltip');
      await tooltip.waitFor();
      expect(await tooltip.innerText()).toMatch(/^a lock for a limited time/);
      expect(await word.count()).toBe(1);
      expect(await violationsIn(page, '.vp-doc')).toEqual([]);
      expect(await widthsOf(page)).toEqual([viewport.width, viewport.width]);
      await page.keyboard.press('Escape');
      await tooltip.waitFor({ state: 'detached' });
      expect(site.complaints).toEqual([]);
      await page.close();
    },
    PATIENCE_MS,
  );
});
