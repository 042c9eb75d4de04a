import { afterEach, describe, expect, it } from '@jest/globals';
import { VersioningType, type INestApplication } from '@nestjs/common';
import { map } from 'rxjs';
import { ADAPTERS, closeHttpApps } from '../nest/http-app.js';
import { fromPage, startBoard } from './board-app.js';

afterEach(closeHttpApps);

const withPrefix = (app: INestApplication): void => {
  app.setGlobalPrefix('ops').enableVersioning({ type: VersioningType.URI, defaultVersion: '1' });
};

/** As a browser finds a file that the page names. */
const found = (page: string, url: string, file: 'css' | 'js'): URL => {
  const base = /<base href="([^"]+)">/.exec(page)?.[1] ?? '';
  const path = new RegExp(`(?:href|src)="(assets/page\\.${file}[^"]*)"`).exec(page)?.[1] ?? '';
  return new URL(path, new URL(base, url));
};

describe.each(ADAPTERS)('the page on %s', (adapter) => {
  it.each([
    ['/locks', undefined],
    ['/locks/', undefined],
    ['/locks?from=a/mail', undefined],
    ['/ops/locks', withPrefix],
    ['/ops/locks/', withPrefix],
  ])('at %s finds its files', async (path, configure) => {
    const { get, url } = await startBoard({ adapter, ...(configure && { configure }) });
    const page = await get(path);
    expect(page).toMatchObject({ status: 200 });
    expect(page.headers.get('content-type')).toMatch(/^text\/html/);
    for (const [file, type] of [
      ['js', /^text\/javascript/],
      ['css', /^text\/css/],
    ] as const) {
      const response = await fetch(found(page.body, url + path, file));
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toMatch(type);
      expect(response.headers.get('cache-control')).toBe('private, max-age=31536000, immutable');
    }
  });

  it('finds its files behind a proxy that takes a prefix away', async () => {
    const { get, url } = await startBoard({ adapter });
    const { body } = await get('/locks');
    expect(found(body, `https://example.com/internal/locks`, 'js').pathname).toBe(
      '/internal/locks/assets/page.js',
    );
    expect(url).not.toContain('internal');
  });

  it('is at a path of several segments', async () => {
    const { get } = await startBoard({
      adapter,
      board: { path: '/tools/locks/', unguarded: true, title: 'Locks of <shop> & "co"' },
    });
    for (const path of ['/tools/locks', '/tools/locks/']) {
      const { status, body } = await get(path);
      expect(status).toBe(200);
      expect(body).toContain('<title>Locks of &lt;shop&gt; &amp; &quot;co&quot;</title>');
    }
    for (const path of ['/tools/locks/nothing', '/tools/locks/assets/page.tsx', '/locks'])
      expect((await get(path)).status).toBe(404);
  });

  it('allows nothing but its own files, and no frame around it', async () => {
    const { get } = await startBoard({ adapter });
    for (const path of ['/locks', '/locks/assets/page.js']) {
      const { headers } = await get(path);
      expect(headers.get('content-security-policy')?.split('; ')).toEqual([
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        'img-src data:',
        "base-uri 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
      ]);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('cache-control')).toBe('no-store');
    }
  });

  it('is what it is under an interceptor that wraps all answers', async () => {
    const { get, post, url } = await startBoard({
      adapter,
      configure: (app) => {
        app.useGlobalInterceptors({
          intercept: (_, next) => next.handle().pipe(map((data: unknown) => ({ data }))),
        });
      },
    });
    expect((await get('/locks')).body).toMatch(/^<!doctype html>/);
    const body = { key: 'order:42', holders: [], reason: 'stuck' };
    const answer = await post('/locks/api/release', body, { headers: fromPage(url) });
    expect(answer).toMatchObject({ status: 200, body: { status: 'nothing' } });
  });

  it('is lighter than 80 kB', async () => {
    const { get } = await startBoard({ adapter });
    const parts = ['/locks', '/locks/assets/page.js', '/locks/assets/page.css'];
    const answers = await Promise.all(parts.map((path) => get(path)));
    const bytes = answers.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0);
    expect(bytes).toBeGreaterThan(10_000);
    expect(bytes).toBeLessThan(80_000);
  });
});
