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

/** Where it is set, the library gets clients of that package: test/support/clients/. */
const client = process.env.HOLDFAST_CLIENT;

/** @type {import('jest').Config} */
export default {
  testEnvironment: `<rootDir>/test/support/${client === undefined ? '' : 'clients/'}environment.mjs`,
  roots: ['<rootDir>/test'],
  testMatch: specsOf(process.env.HOLDFAST_PART ?? 'all').map((spec) => `<rootDir>/${spec}`),
  testSequencer: '<rootDir>/test/support/sequencer.mjs',
  globalSetup: '<rootDir>/test/support/global-setup.mjs',
  modulePathIgnorePatterns: ['<rootDir>/test/claims/apps/templates/'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '\\.ts$': swc('es6'), '\\.cts$': swc('commonjs') },
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
  collectCoverageFrom: ['{lib,packages/*/lib}/**/*.ts', '!packages/board/lib/page/**'],
  coverageProvider: 'v8',
  coverageReporters: ['text', 'json-summary'],
  coverageThreshold: { global: { lines: 99 } },
  // Most of the time a test waits, for a lease to end or a server to start: more workers than cores.
  maxWorkers: 8,
  testTimeout: 30_000,
};
