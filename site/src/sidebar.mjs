/** The order in which the site shows the pages of docs/. test/claims/docs/site.spec.ts checks that no page is missing. */
const group = (text, pages) => ({
  text,
  collapsed: false,
  items: Object.entries(pages).map(([name, title]) => ({ text: title, link: `/${name}` })),
});

export const sidebar = [
  group('Start', {
    'getting-started': 'Getting started',
  }),
  group('Recipes', {
    recipes: 'Recipes',
  }),
  group('Guide', {
    decorators: 'Handlers and services',
    waiting: 'Waiting and answering',
    'by-hand': 'Locks by hand',
    cron: 'Cron jobs and leaders',
    once: 'Once-only work',
    limits: 'Readers and limits',
    transports: 'Transports',
  }),
  group('Redis', {
    redis: 'Redis',
  }),
  group('Operate', {
    board: 'Lock dashboard',
    cli: 'Command line',
    operations: 'Runbook',
    telemetry: 'Telemetry and health',
  }),
  group('Reference', {
    options: 'Options',
    errors: 'Errors',
    guarantees: 'Guarantees',
    performance: 'Performance',
    compatibility: 'Compatibility',
    migrating: 'Migrating',
    'api/': 'API',
    changelog: 'Changelog',
  }),
  group('Internals', {
    'internals/explorer': 'What happens when…',
    'internals/architecture': 'Architecture',
    'internals/protocol': 'Protocol',
    'internals/diagrams': 'Diagrams',
    'internals/promises': 'Promises in detail',
    'internals/questions': 'Questions of other trackers',
    'internals/glossary': 'Glossary',
    'internals/parts': 'Parts',
    'internals/testing': 'How Holdfast is tested',
    'internals/runs': 'What was run',
    'internals/correctness': 'How correctness is checked',
    'internals/simulation-planted': 'Bugs that the simulation finds',
    'internals/track-record': 'Track record',
    'internals/replaced-packages': 'Replaced packages',
    'internals/performance': 'Performance in full',
    'internals/scale': 'Scale',
  }),
];
