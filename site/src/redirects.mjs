/** Pages that have moved, by their former addresses on the site. */
export const redirects = {
  architecture: 'internals/architecture',
  choosing: 'redis',
  correctness: 'internals/correctness',
  internals: 'internals/parts',
  patterns: 'recipes',
  protocol: 'internals/protocol',
  scale: 'internals/scale',
  'simulation-planted': 'internals/simulation-planted',
  testing: 'internals/testing',
  tutorial: 'getting-started',
  'track-record': 'internals/track-record',
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
