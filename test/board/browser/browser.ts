import { appendFileSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import type { AxeResults } from 'axe-core';
import { chromium, type Browser, type Page } from 'playwright-core';
import { Program } from '../../claims/sample/program.js';
import { closeHttpApps, type HttpApp } from '../../nest/http-app.js';
import { RedisServer } from '../../support/redis-server.js';

const { source: axeSource } = createRequire(import.meta.url)('axe-core') as { source: string };

/** A page has this long to show what it should: the machine may be busy. */
const PATIENCE_MS = 30_000;

export const WIDTHS = { wide: 1_280, tablet: 768, phone: 390 } as const;

interface View {
  readonly colorScheme?: 'light' | 'dark';
  readonly width?: number;
}

/** What the tests of a file have in common: a browser, a Redis for each test, other processes. */
export class Stage {
  redis!: RedisServer;
  shop!: HttpApp;
  /** What the page complained of: scripts that failed, files that the CSP refused. */
  complaints: string[] = [];
  #browser!: Browser;
  readonly #programs: Program[] = [];

  constructor(startShop: (redis: RedisServer) => Promise<HttpApp>) {
    beforeAll(async () => {
      this.#browser = await chromium.launch({
        ...(process.env.CHROMIUM_BIN !== undefined && { executablePath: process.env.CHROMIUM_BIN }),
        args: ['--no-sandbox'],
      });
    }, 60_000);
    afterAll(() => this.#browser.close());
    beforeEach(async () => {
      this.redis = await RedisServer.start();
      this.shop = await startShop(this.redis);
      this.complaints = [];
    }, 60_000);
    afterEach(async () => {
      await Promise.all(this.#browser.contexts().map((context) => context.close()));
      await Promise.all(this.#programs.splice(0).map((program) => program.kill()));
      await closeHttpApps();
      await this.redis.stop();
    }, 60_000);
  }

  /** A program beside the application. */
  start(script: string, env: Readonly<Record<string, string>> = {}): Program {
    const program = new Program(script, { REDIS_URL: this.redis.url, ...env });
    this.#programs.push(program);
    return program;
  }

  /** A process that holds "order:42", and does not move any more. */
  async frozenHolder(): Promise<Program> {
    const holder = this.start('test/board/browser/holder.ts');
    await holder.says(/held/);
    holder.signal('SIGSTOP');
    return holder;
  }

  async open(
    fragment = '',
    { colorScheme = 'light', width = WIDTHS.wide }: View = {},
  ): Promise<Page> {
    const page = await this.#browser.newPage({ colorScheme, viewport: { width, height: 800 } });
    page.setDefaultTimeout(PATIENCE_MS);
    page.on('console', (message) => this.complaints.push(message.text()));
    page.on('pageerror', (error) => this.complaints.push(error.message));
    page.on('dialog', (dialog) => {
      this.complaints.push(`dialog ${dialog.message()}`);
      void dialog.dismiss();
    });
    await page.goto(`${this.shop.url}/locks${fragment}`);
    await page.getByLabel('Status').getByText('Connecting').waitFor({ state: 'detached' });
    return page;
  }
}

/** What axe finds, in a few words. */
export async function findingsIn(page: Page): Promise<readonly string[]> {
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate<AxeResults>('axe.run(document, {})');
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

/** What is kept to be looked at after the tests. */
function artefact(name: string): string {
  const folder = fileURLToPath(new URL('../../../pictures/', import.meta.url));
  mkdirSync(folder, { recursive: true });
  return join(folder, name);
}

/** Keeps a picture of a page: `pictures/key-phone-dark.png`. */
export async function picture(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: artefact(`${name}.png`), fullPage: true });
}

/** Keeps how long something took: a line of `pictures/times.txt`. */
export async function timed<T>(what: string, work: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  const result = await work();
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  appendFileSync(artefact('times.txt'), `${seconds} s  ${what}\n`);
  return result;
}
