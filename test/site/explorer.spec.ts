import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { AxeResults } from 'axe-core';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { chromium, type Browser, type Locator, type Page } from 'playwright-core';
import { eventually, until } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { guardAgainstOrphans } from '../support/orphan-guard.js';

const { source: axeSource } = createRequire(import.meta.url)('axe-core') as { source: string };

const SITE = fileURLToPath(new URL('../../site/', import.meta.url));
const VITEPRESS = join(SITE, 'node_modules/vitepress/bin/vitepress.js');

/** The dev server compiles what the page wants when it is asked for, and the machine may be busy. */
const PATIENCE_MS = 180_000;

let server: ChildProcess;
let browser: Browser;
let address: string;
/** What the page complained of. */
let complaints: string[] = [];

beforeAll(async () => {
  if (!existsSync(VITEPRESS))
    throw new Error('The packages of the site are missing: npm run test:site installs them.');
  await promisify(execFile)(process.execPath, ['src/pages.mjs'], { cwd: SITE });
  const port = await freePort();
  address = `http://127.0.0.1:${String(port)}`;
  const words = ['dev', '--port', String(port), '--host', '127.0.0.1'];
  const { NODE_OPTIONS: _, ...env } = process.env;
  server = spawn(process.execPath, [VITEPRESS, ...words], { cwd: SITE, env, stdio: 'ignore' });
  const ended = until(server, 'exit').then(() => undefined);
  guardAgainstOrphans(server.pid!, mkdtempSync(join(tmpdir(), 'holdfast-site-')), ended);
  browser = await chromium.launch({
    ...(process.env.CHROMIUM_BIN !== undefined && { executablePath: process.env.CHROMIUM_BIN }),
    args: ['--no-sandbox'],
  });
  await eventually(async () => (await fetch(address)).ok, { withinMs: PATIENCE_MS });
  // The first page that is opened has Vite look for packages, and is loaded again when they are bundled.
  await (await open('hand-over')).close();
}, 2 * PATIENCE_MS);

afterAll(async () => {
  await browser.close();
  server.kill('SIGKILL');
});

beforeEach(() => {
  complaints = [];
});

async function open(
  scenario: string,
  options: Parameters<Browser['newPage']>[0] = {},
): Promise<Page> {
  // Nobody waits for time: with this setting the page shows the end of a world at once.
  const page = await browser.newPage({ reducedMotion: 'reduce', ...options });
  page.setDefaultTimeout(PATIENCE_MS);
  page.on('pageerror', (error) => complaints.push(error.stack ?? error.message));
  await page.goto(`${address}/explorer#scenario=${scenario}`);
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
      expect(complaints).toEqual([]);
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
      expect(complaints).toEqual([]);
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
      expect(complaints).toEqual([]);
      await page.close();
    },
    PATIENCE_MS,
  );

  it.each(['light', 'dark'] as const)(
    'can be used by everybody, also on a small screen (%s)',
    async (colorScheme) => {
      const page = await open('majority-cut', {
        colorScheme,
        viewport: { width: 390, height: 800 },
      });
      await page.evaluate(axeSource);
      const { violations } = await page.evaluate<AxeResults>(`axe.run('.explorer', {})`);
      const found = violations.flatMap(({ id, nodes }) =>
        nodes.map(({ html }) => `${id}: ${html}`),
      );
      expect(found).toEqual([]);
      const [whole, window] = await page.evaluate<[number, number]>(
        '[document.documentElement.scrollWidth, innerWidth]',
      );
      expect(whole).toBeLessThanOrEqual(window);
      await page.close();
    },
    PATIENCE_MS,
  );
});
