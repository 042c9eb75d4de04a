import { PACKAGES, REDIS_ROOMS, ROOMS } from './scripts/rooms.mjs';

/** One rule for each room: nothing of the others but what it may import. */
const rulesOf = (rooms, folder) =>
  Object.entries(rooms).map(([room, mayImport]) => ({
    name: `what ${room} may import`,
    comment: 'See scripts/rooms.mjs.',
    severity: 'error',
    from: { path: `^${folder}${room}/` },
    to: {
      path: `^${folder}(${Object.keys(rooms).join('|')})/`,
      pathNot: `^${folder}(${[room, ...mayImport].join('|')})/`,
    },
  }));

/** `lib/admin/index.ts` of `nestjs-holdfast/admin`. */
const fileOf = (entry) =>
  entry.startsWith('@')
    ? entry.replace('@nestjs-holdfast', 'packages') + '/lib/index\\.ts'
    : entry.replace('nestjs-holdfast', 'lib') + '/index\\.ts';

/** Of the library and of other packages, a package imports entries, and by their names. */
const rulesOfPackages = Object.entries(PACKAGES).flatMap(([name, entries]) => [
  {
    name: `what packages/${name} may import`,
    comment: 'See scripts/rooms.mjs.',
    severity: 'error',
    from: { path: `^packages/${name}/` },
    to: {
      path: '^(lib|packages)/',
      pathNot: [`^packages/${name}/`, ...entries.map((entry) => `^${fileOf(entry)}$`)],
    },
  },
  {
    name: `packages/${name} imports entries by their names`,
    severity: 'error',
    from: { path: `^packages/${name}/` },
    to: { path: '^lib/', dependencyTypesNot: ['aliased'] },
  },
]);

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    ...rulesOf(ROOMS, 'lib/'),
    ...rulesOf(REDIS_ROOMS, 'lib/store/redis/'),
    ...rulesOfPackages,
    {
      name: 'the library knows none of its packages',
      severity: 'error',
      from: { path: '^lib/' },
      to: { path: '^packages/' },
    },
    {
      name: 'no circle',
      comment: 'Imports of types count, too.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'only nest/ knows Nest',
      severity: 'error',
      from: {
        path: '^lib/',
        pathNot: '^lib/(nest|swagger|terminus|testing)/|\\.module\\.ts$',
      },
      to: { path: '@nestjs/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'only store/redis/client/ knows clients',
      severity: 'error',
      from: { path: '^lib/', pathNot: '^lib/store/redis/client/' },
      to: { path: 'node_modules/(ioredis|iovalkey|redis|@redis|@valkey)/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'default'] },
  },
};
