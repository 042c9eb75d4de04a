/** The order in which the site shows the pages of docs/. test/claims/docs/site.spec.ts checks that no page is missing. */
const group = (text, pages) => ({
  text,
  collapsed: false,
  items: Object.entries(pages).map(([name, title]) => ({ text: title, link: `/${name}` })),
});

export const sidebar = [
  group('Start', {
    deciding: 'Is this for me?',
    'getting-started': 'Getting started',
    patterns: 'Patterns',
    migrating: 'Migrating',
    compatibility: 'Compatibility',
    faq: 'Questions',
  }),
  group('Guide', {
    decorators: 'Decorators',
    'will-it-work': 'Will it work?',
    'by-hand': 'By hand: LockService',
    cron: 'Cron jobs',
    fencing: 'Fencing',
    redis: 'Redis',
    drivers: 'Locks in another database',
    transports: 'Transports',
    'testing-your-app': 'Testing your application',
  }),
  group('Special cases', {
    once: 'Work done once',
    leaders: 'Leaders',
    limits: 'Limited locks',
    'newest-wins': 'The newest wins',
    definitions: 'Keys that are written once',
    detach: 'Locks that move to workers',
  }),
  group('Operating', {
    operations: 'What to do when',
    health: 'Health',
    telemetry: 'Events and telemetry',
    cli: 'Command line',
    board: 'The lock dashboard',
    admin: 'LockAdmin',
  }),
  group('Concepts', {
    explorer: 'What happens when…',
    concepts: 'Diagrams',
    glossary: 'Glossary',
    guarantees: 'Guarantees',
    performance: 'Performance',
  }),
  group('Reference', {
    options: 'Options',
    errors: 'Errors',
    'api/': 'API',
    changelog: 'Changelog',
  }),
  group('Internals', {
    'internals/architecture': 'Architecture',
    'internals/protocol': 'Protocol',
    'internals/promises': 'Promises in detail',
    'internals/parts': 'Parts',
    'internals/testing': 'How it is tested',
    'internals/correctness': 'How correctness is checked',
    'internals/simulation-planted': 'Bugs that the simulation finds',
    'internals/track-record': 'Track record',
    'internals/performance': 'Performance in full',
    'internals/scale': 'Scale',
  }),
];
