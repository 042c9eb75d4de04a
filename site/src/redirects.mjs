/** Pages that have moved, by their former addresses on the site. */
export const redirects = {
  admin: 'board',
  architecture: 'internals/architecture',
  choosing: 'redis',
  concepts: 'internals/diagrams',
  correctness: 'internals/correctness',
  deciding: 'getting-started',
  definitions: 'by-hand',
  detach: 'by-hand',
  drivers: 'compatibility',
  explorer: 'internals/explorer',
  faq: 'internals/questions',
  fencing: 'by-hand',
  glossary: 'internals/glossary',
  health: 'telemetry',
  internals: 'internals/parts',
  leaders: 'cron',
  'newest-wins': 'recipes',
  patterns: 'recipes',
  protocol: 'internals/protocol',
  scale: 'internals/scale',
  'simulation-planted': 'internals/simulation-planted',
  testing: 'internals/testing',
  'testing-your-app': 'recipes',
  tutorial: 'getting-started',
  'track-record': 'internals/track-record',
  'will-it-work': 'decorators',
};

/** GitHub Pages sends no redirects, so a page does. The heading in the address stays. */
export const redirectTo = (address) => `<!doctype html>
<meta charset="utf-8">
<title>Holdfast</title>
<link rel="canonical" href="${address}">
<noscript><meta http-equiv="refresh" content="0; url=${address}"></noscript>
<script>location.replace('${address}' + location.hash)</script>
<a href="${address}">This page has moved.</a>
`;
