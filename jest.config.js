import { CORE } from './test/support/clients/suites.mjs';
import { specsOf } from './scripts/test-parts.mjs';

/** How swc compiles TypeScript to modules of this type. */
const swc = (type) => [
  '@swc/jest',
  {
    jsc: {
      target: 'es2022',
      parser: { syntax: 'typescript', decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata: true },
      keepClassNames: true,
    },
    module: { type },
    sourceMaps: 'inline',
  },
];

const { HOLDFAST_CLIENT: client, HOLDFAST_PART: part = 'all' } = process.env;
/** Where nothing is said of clients, the core of their tests runs with this one, too. */
const OTHER_CLIENT = 'node-redis';

/** How a file of the project is compiled. */
export const TRANSFORM = { '\\.ts$': swc('es6'), '\\.cts$': swc('commonjs') };

/**
 * The settings of some specs. Where a client is named, the library gets clients of that package: test/support/clients/.
 *
 * @returns {import('jest').Config}
 */
const settingsOf = (client, specs) => ({
  testEnvironment: `<rootDir>/test/support/${client === undefined ? '' : 'clients/'}environment.mjs`,
  testEnvironmentOptions: { client },
  roots: ['<rootDir>/test'],
  testMatch: specs.map((spec) => `<rootDir>/${spec}`),
  globalSetup: '<rootDir>/test/support/global-setup.mjs',
  modulePathIgnorePatterns: ['<rootDir>/test/claims/apps/templates/'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: TRANSFORM,
  moduleNameMapper: {
    // The stand-in itself finds the original by another path.
    ...(client !== undefined && {
      '^(?!\\.\\./\\.\\./\\.\\./lib/)\\.{1,2}/(.*/)?redis-location\\.js$':
        '<rootDir>/test/support/clients/redis-location.ts',
    }),
    '^(\\.{1,2}/.*)\\.js$': '$1',
    '^\\./acorn\\.cjs$': '<rootDir>/lib/key/acorn.cts',
    '^\\./this-file\\.cjs$': '<rootDir>/lib/nest/methods/this-file.cts',
    '^\\./page-folder\\.cjs$': '<rootDir>/test/support/page-folder.cts',
    '/installed\\.cjs$': '<rootDir>/lib/store/redis/client/installed.cts',
    '^nestjs-holdfast$': '<rootDir>/lib/index.ts',
    '^nestjs-holdfast/(\\w+)$': '<rootDir>/lib/$1/index.ts',
    '^@nestjs-holdfast/(\\w+)$': '<rootDir>/packages/$1/lib/index.ts',
  },
});

const specs = specsOf(part);
const projects =
  part === 'main' && client === undefined
    ? [
        { displayName: 'usual', ...settingsOf(undefined, specs) },
        {
          displayName: OTHER_CLIENT,
          ...settingsOf(
            OTHER_CLIENT,
            specs.filter((spec) => CORE.test(spec)),
          ),
        },
      ]
    : undefined;

/** @type {import('jest').Config} */
export default {
  ...(projects === undefined ? settingsOf(client, specs) : { projects }),
  // Not of a project: jest would not look at it there.
  testTimeout: 30_000,
  testSequencer: '<rootDir>/test/support/sequencer.mjs',
  collectCoverageFrom: ['{lib,packages/*/lib}/**/*.ts', '!packages/board/lib/page/**'],
  coverageProvider: 'v8',
  coverageReporters: ['text', 'json-summary'],
  coverageThreshold: { global: { lines: 99 } },
  // Most of the time a test waits, for a lease to end or a server to start: more workers than cores.
  maxWorkers: 8,
};
