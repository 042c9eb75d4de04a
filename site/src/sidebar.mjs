/** The order in which the site shows the pages of docs/. test/claims/docs/site.spec.ts checks that no page is missing. */
const group = (text, pages) => ({
  text,
  collapsed: false,
  items: Object.entries(pages).map(([name, title]) => ({ text: title, link: `/${name}` })),
});

export const sidebar = [
  group('Start', {
    'getting-started': 'Getting started',
    deciding: 'Is this for me?',
  }),
  group('Recipes', {
    recipes: 'Recipes',
    'newest-wins': 'The newest wins',
    definitions: 'Keys that are written once',
    fencing: 'Fencing',
  }),
  group('Guide', {
    decorators: 'Decorators',
    'will-it-work': 'Will it work?',
    'by-hand': 'LockService',
    cron: 'Cron jobs',
    once: 'Work that is to be done once',
    limits: 'Limited locks',
    leaders: 'Leaders',
    detach: 'Locks that move to another process',
    transports: 'Transports',
    'testing-your-app': 'Testing your application',
  }),
  group('Redis', {
    redis: 'Redis',
    drivers: 'Locks in another database',
  }),
  group('Operate', {
    operations: 'Operations',
    board: 'The lock dashboard',
    cli: 'The command line',
    admin: 'LockAdmin',
    health: 'Health',
    telemetry: 'Events and telemetry',
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
  group('More', {
    explorer: 'What happens when…',
    concepts: 'Diagrams',
    faq: 'Questions',
    glossary: 'Glossary',
  }),
  group('Internals', {
    'internals/architecture': 'Architecture',
    'internals/protocol': 'Protocol',
    'internals/promises': 'Promises in detail',
    'internals/parts': 'Parts',
    'internals/testing': 'How Holdfast is tested',
    'internals/runs': 'What was run',
    'internals/correctness': 'How correctness is checked',
    'internals/simulation-planted': 'Bugs that the simulation finds',
    'internals/track-record': 'Track record',
    'internals/performance': 'Performance in full',
    'internals/scale': 'Scale',
  }),
];
