/** Pages that have moved, by their former addresses on the site. Some are a part of another page now. */
export const redirects = {
  admin: 'board#lockadmin',
  architecture: 'internals/architecture',
  choosing: 'redis',
  concepts: 'internals/diagrams',
  correctness: 'internals/correctness',
  deciding: 'getting-started#is-this-for-me',
  definitions: 'by-hand#keys-that-are-written-once',
  detach: 'by-hand#locks-that-move-to-another-process',
  drivers: 'compatibility#locks-in-another-database',
  explorer: 'internals/explorer',
  faq: 'internals/questions',
  fencing: 'by-hand#fencing',
  glossary: 'internals/glossary',
  health: 'telemetry#health',
  internals: 'internals/parts',
  leaders: 'cron#leaders',
  'newest-wins': 'recipes#the-newest-wins',
  patterns: 'recipes',
  protocol: 'internals/protocol',
  scale: 'internals/scale',
  'simulation-planted': 'internals/simulation-planted',
  testing: 'internals/testing',
  'testing-your-app': 'recipes#testing-your-application',
  tutorial: 'getting-started',
  'track-record': 'internals/track-record',
  'will-it-work': 'decorators#will-it-work',
};

/** GitHub Pages sends no redirects, so a page does. A heading in the address that was asked for stays. */
export function redirectTo(address) {
  const [page] = address.split('#');
  return `<!doctype html>
<meta charset="utf-8">
<title>Holdfast</title>
<link rel="canonical" href="${page}">
<noscript><meta http-equiv="refresh" content="0; url=${address}"></noscript>
<script>location.replace(location.hash ? '${page}' + location.hash : '${address}')</script>
<a href="${address}">This page has moved.</a>
`;
}
