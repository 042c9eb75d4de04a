import type { AxeResults } from 'axe-core';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';

export const FILES = fileURLToPath(new URL('../../../site/.vitepress/dist/', import.meta.url));
const BASE = process.env.SITE_BASE ?? '/';

/** A page has this long to show what it should: the machine may be busy. */
export const PATIENCE_MS = 30_000;

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css',
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.svg': 'image/svg+xml',
};

/** The files that `npm run site` has made, served as GitHub Pages serves them, and a browser. */
export class BuiltSite {
  /** What the last page complained of: errors in the console, files that are missing or of another host. */
  readonly complaints: string[] = [];
  readonly #server: Server;
  readonly #browser: Browser;

  private constructor(server: Server, browser: Browser) {
    this.#server = server;
    this.#browser = browser;
  }

  static async start(): Promise<BuiltSite> {
    if (!existsSync(FILES)) throw new Error('The site is not built: npm run test:site builds it.');
    const browser = await chromium.launch({
      ...(process.env.CHROMIUM_BIN !== undefined && { executablePath: process.env.CHROMIUM_BIN }),
      args: ['--no-sandbox'],
    });
    const server = createServer((request, response) => {
      const path = fileOf(new URL(request.url ?? '/', 'http://site').pathname);
      readFile(path).then(
        (content) => {
          response.setHeader('Content-Type', TYPES[extname(path)] ?? 'application/octet-stream');
          response.end(content);
        },
        () => response.writeHead(404).end(),
      );
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new BuiltSite(server, browser);
  }

  /** @param path from the root of the site, such as `'explorer#scenario=own'` */
  async open(path: string, options: BrowserContextOptions = {}): Promise<Page> {
    const { port } = this.#server.address() as AddressInfo;
    this.complaints.length = 0;
    const home = `http://127.0.0.1:${String(port)}${BASE}`;
    const page = await this.#browser.newPage(options);
    page.setDefaultTimeout(PATIENCE_MS);
    page.on('pageerror', (error) => this.complaints.push(error.stack ?? error.message));
    page.on('console', (message) => {
      if (message.type() === 'error') this.complaints.push(message.text());
    });
    page.on('request', (request) => {
      if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(home))
        this.complaints.push(`a request to ${request.url()}`);
    });
    page.on('response', (response) => {
      if (!response.ok()) this.complaints.push(`${String(response.status())} ${response.url()}`);
    });
    await page.goto(home + path, { waitUntil: 'load' });
    return page;
  }

  async stop(): Promise<void> {
    await this.#browser.close();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

const { source: axeSource } = createRequire(import.meta.url)('axe-core') as { source: string };

/** What keeps some readers from using a part of the page. */
export async function violationsIn(page: Page, part: string): Promise<readonly string[]> {
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate<AxeResults>(`axe.run('${part}', {})`);
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

/** How wide the page is, and its window. */
export const widthsOf = (page: Page): Promise<[number, number]> =>
  page.evaluate('[document.documentElement.scrollWidth, innerWidth]');

/** `/explorer` is the file `explorer.html`. */
function fileOf(path: string): string {
  const name = decodeURIComponent(path.slice(BASE.length));
  if (name === '' || name.endsWith('/')) return `${FILES}${name}index.html`;
  return extname(name) === '' ? `${FILES}${name}.html` : FILES + name;
}
