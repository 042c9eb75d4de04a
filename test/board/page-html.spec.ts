import { describe, expect, it } from '@jest/globals';
import { baseOf, PAGE_HEADERS, pageHtml } from '../../packages/board/lib/page-html.js';

describe('the page before its script runs', () => {
  it.each([
    ['/locks', './locks/'],
    ['/locks/', './'],
    ['/ops/locks?from=a/mail', './locks/'],
    ['/ops/locks/?x=1', './'],
    ['', './/'],
  ])('asked for at %j has the base %j', (url, base) => {
    expect(baseOf(url)).toBe(base);
  });

  it('names its files with their version, and escapes what others write', () => {
    const html = pageHtml(`a & <b> "c" 'd'`, '/x/"><script>', 'v1');
    const title = 'a &amp; &lt;b&gt; &quot;c&quot; &#39;d&#39;';
    expect(html).toContain(`<title>${title}</title>`);
    expect(html).toContain(`<body data-title="${title}">`);
    expect(html).toContain('<base href="./&quot;&gt;&lt;script&gt;/">');
    expect(html).toContain('href="assets/page.css?v=v1"');
    expect(html).toContain('src="assets/page.js?v=v1"');
    expect(html.startsWith('<!doctype html>\n')).toBe(true);
  });

  it('comes with headers that keep it to itself', () => {
    const { 'Content-Security-Policy': policy, ...others } = PAGE_HEADERS;
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(others).toEqual({
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'same-origin',
      'Cross-Origin-Resource-Policy': 'same-origin',
      'Cache-Control': 'no-store',
    });
  });
});
