import { REDIS_ROOMS, ROOMS } from './scripts/rooms.mjs';

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

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    ...rulesOf(ROOMS, 'lib/'),
    ...rulesOf(REDIS_ROOMS, 'lib/store/redis/'),
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
        pathNot: '^lib/(nest|swagger|board|terminus|testing)/|\\.module\\.ts$',
      },
      to: { path: '@nestjs/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'only store/redis/client/ knows ioredis',
      severity: 'error',
      from: { path: '^lib/', pathNot: '^lib/store/redis/client/' },
      to: { path: 'node_modules/ioredis/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'default'] },
  },
};
