const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const escaped = (text: string): string => text.replace(/[&<>"']/g, (sign) => ESCAPES[sign] ?? sign);

/**
 * What the addresses of the page are relative to, from where the browser asked for it. Relative itself: a proxy may have taken a prefix
 * away that the browser sees.
 */
export function baseOf(originalUrl: string): string {
  const [path = ''] = originalUrl.split('?');
  if (path.endsWith('/')) return './';
  return `./${path.slice(path.lastIndexOf('/') + 1)}/`;
}

/** The page before its script runs. */
export const pageHtml = (title: string, originalUrl: string, version: string): string =>
  `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<base href="${escaped(baseOf(originalUrl))}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="assets/page.css?v=${version}">
<script type="module" src="assets/page.js?v=${version}"></script>
</head>
<body data-title="${escaped(title)}">
<noscript>This page needs JavaScript.</noscript>
</body>
</html>
`;

/** Only our own files, and no other page may frame this one. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': [
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
  ].join('; '),
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-store',
};
