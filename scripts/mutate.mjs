/**
 * `npm run test:mutation -- key time`: changes the code of these folders of lib/, one operator or value at a time, and looks whether a test
 * notices (StrykerJS). Prints the score of each folder, and what survived. Without folders it takes those that differ from `--since` (default:
 * origin/main). What is known from the run before is not done again (`.stryker/`). `--least 90` fails below that score.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Stryker } from '@stryker-mutator/core';
import { compiledProject } from './compile.mjs';
import { specsOf } from './test-parts.mjs';

const projectRoot = dirname(dirname(fileURLToPath(import.meta.url)));
process.chdir(projectRoot);
process.env.HOLDFAST_COMPILED = compiledProject(); // what child processes of tests run is never changed
const { default: jestConfig } = await import('../jest.config.js');

/** What `npm test` needs and these runs do not. */
const LEFT_OUT = new Set([
  ...['testSequencer', 'globalSetup', 'maxWorkers'],
  ...['collectCoverageFrom', 'coverageProvider', 'coverageReporters', 'coverageThreshold'],
]);

/** A change may have a test wait for what never comes: those without a server take milliseconds. */
const TEST_TIMEOUT_MS = { unit: 3_000, servers: 15_000 };

/** Specs that take longer are left out: they would be run for hundreds of changes. */
const LONGEST_S = 20;

/** What is tested through another folder, and by which of its specs. Few: each is loaded for every change. */
const ALSO_TESTED_IN = {
  errors: ['nest/errors'],
  observe: ['lease/lease', 'queue/waiting'],
  options: ['module/options'],
};

function settings() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      since: { type: 'string', default: 'origin/main' },
      least: { type: 'string', default: '0' },
      workers: { type: 'string', default: String(availableParallelism()) },
    },
  });
  const folders = positionals.length > 0 ? positionals : changedSince(values.since);
  for (const folder of folders)
    if (!existsSync(join('lib', folder))) throw new Error(`lib/ has no folder "${folder}".`);
  return { folders, least: Number(values.least), workers: Number(values.workers) };
}

function changedSince(revision) {
  const names = execFileSync('git', ['diff', '--name-only', revision, '--', 'lib'], {
    encoding: 'utf8',
  });
  const folders = new Set(Array.from(names.matchAll(/^lib\/(\w+)\//gm), ([, folder]) => folder));
  return readdirSync('lib').filter((folder) => folders.has(folder));
}

/**
 * The tests of a folder are those in the folder of the same name, and those that import from it. All others would take hours, and a folder
 * should not lean on them.
 */
function testsOf(folder) {
  const seconds = JSON.parse(readFileSync('test/times.json', 'utf8'));
  const homes = [`${folder}/`, ...(ALSO_TESTED_IN[folder] ?? [])].map((home) => `test/${home}`);
  const isNear = (spec) =>
    homes.some((home) => spec.startsWith(home)) ||
    readFileSync(spec, 'utf8').includes(`/lib/${folder}/`);
  const specs = specsOf('main').filter(
    (spec) =>
      isNear(spec) && (seconds[spec] ?? 0) <= LONGEST_S && !/^test\/(docs|types)\//.test(spec),
  );
  const unit = new Set(specsOf('unit'));
  const timeoutMs = specs.every((spec) => unit.has(spec))
    ? TEST_TIMEOUT_MS.unit
    : TEST_TIMEOUT_MS.servers;
  return { specs, timeoutMs };
}

function mutationTestOf(folder, workers) {
  const jest = Object.fromEntries(
    Object.entries(jestConfig).filter(([name]) => !LEFT_OUT.has(name)),
  );
  const { specs, timeoutMs } = testsOf(folder);
  return new Stryker({
    mutate: [`lib/${folder}/**/*.ts`, '!**/*.d.ts'],
    testRunner: 'jest',
    testRunnerNodeArgs: ['--experimental-vm-modules'],
    jest: {
      projectType: 'custom',
      enableFindRelatedTests: false,
      config: {
        ...jest,
        testEnvironment: '@stryker-mutator/jest-runner/jest-env/node',
        testTimeout: timeoutMs,
        testMatch: specs.map((spec) => `<rootDir>/${spec}`),
      },
    },
    coverageAnalysis: 'perTest',
    ignoreStatic: true,
    incremental: true,
    incrementalFile: `.stryker/${folder}.json`,
    tempDirName: '.stryker/tmp',
    ignorePatterns: ['/.stryker', '/dist', '/bench', '/coverage', '/test/apps/templates'],
    concurrency: workers,
    timeoutMS: 5_000,
    maxTestRunnerReuse: 100,
    reporters: ['clear-text', 'json'],
    clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
    jsonReporter: { fileName: `.stryker/reports/${folder}.json` },
    checkers: [],
    logLevel: 'info',
  }).runMutationTest();
}

const KILLED = new Set(['Killed', 'Timeout']);
const COUNTED = new Set([...KILLED, 'Survived', 'NoCoverage']);

const { folders, least, workers } = settings();
const scores = [];
for (const folder of folders) {
  const mutants = await mutationTestOf(folder, workers);
  const counted = mutants.filter(({ status }) => COUNTED.has(status));
  const killed = counted.filter(({ status }) => KILLED.has(status));
  const score = counted.length === 0 ? 100 : (100 * killed.length) / counted.length;
  scores.push({ folder, mutants: counted.length, killed: killed.length, score });
}
for (const { folder, mutants, killed, score } of scores)
  console.log(`mutation: lib/${folder}: ${score.toFixed(1)} % (${killed} of ${mutants})`);
const tooLow = scores.filter(({ score }) => score < least);
if (tooLow.length > 0) {
  console.error(`mutation: below ${least} %: ${tooLow.map(({ folder }) => folder).join(', ')}`);
  process.exitCode = 1;
}
