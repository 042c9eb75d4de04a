/**
 * `npm run test:mutation -- key time`: changes the code of these folders of lib/ and packages, one operator or value at a time, and looks whether a test
 * notices (StrykerJS). Prints the score of each folder, and what survived. Without folders it takes those of the table in docs/internals/testing.md
 * that differ from `--since` (default: origin/main). What is known from the run before is not done again (`.stryker/`). Fails where a folder
 * has fallen below its score in that table; `--record` writes it anew. `--sample 10` changes one of ten passages of each file, always the
 * same ones; without it, a folder is measured in the way that its row in the table says. What survives in the store without a server is
 * tested further (scripts/mutation/further.mjs).
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Stryker } from '@stryker-mutator/core';
import { format, resolveConfig } from 'prettier';
import { compiledProject } from './compile.mjs';
import { homeOf, OF_BROWSERS, passagesOf } from './mutation/passages.mjs';
import { testFurther } from './mutation/further.mjs';
import { ensureRedisServer } from './redis-server.mjs';
import { specsOf } from './test-parts.mjs';

const projectRoot = dirname(dirname(fileURLToPath(import.meta.url)));
process.chdir(projectRoot);
process.env.REDIS_SERVER_BIN = ensureRedisServer();
process.env.HOLDFAST_COMPILED = compiledProject(); // what child processes of tests run is never changed
const { default: jestConfig } = await import('../jest.config.js');

/** What `npm test` needs and these runs do not. */
const LEFT_OUT = new Set([
  ...['testSequencer', 'maxWorkers'],
  ...['collectCoverageFrom', 'coverageProvider', 'coverageReporters', 'coverageThreshold'],
]);

/** A change may have a test wait for what never comes. Those without a server take milliseconds, and seconds on a busy machine. */
const TEST_TIMEOUT_MS = { unit: 10_000, servers: 15_000 };

/** Specs that take longer are left out: they would be run for hundreds of changes. */
const LONGEST_S = 20;

/** What is tested through another folder, and by which of its specs. Few: each is loaded for every change. */
const ALSO_TESTED_IN = {
  cli: ['migrate/command'],
  engine: ['once/run-once'],
  errors: ['nest/errors'],
  observe: ['lease/lease', 'queue/waiting'],
  opentelemetry: ['observe/spans', 'observe/exported-metrics'],
  options: ['nest/module/options'],
  prometheus: ['observe/exported-metrics', 'observe/grafana'],
  sections: ['lease/sections'],
  swagger: ['nest/swagger'],
  worker: ['once/worker'],
};

/** Their specs belong to what takes long, but not all of them take long. */
const OF_OPERATORS = new Set(['board', 'cli']);

/** Specs that start processes, in which nothing is changed, or many servers, for what others of the folder also test. */
const NOTICE_NOTHING = /^test\/cli\/(program|terminal|three-in-the-morning)\./;

/** Their specs that need a server are left out: they would be run for hundreds of changes. */
const WITHOUT_SERVERS = new Set(['engine', 'lease', 'once', 'queue', 'store', 'terminus']);

const TABLE = 'docs/internals/testing.md';

/** The row of a folder in the documentation: mutants, killed, score, and what is said of them. */
const rowOf = (folder) =>
  new RegExp(`^\\| \`${homeOf(folder)}\` *\\| *\\d+ *\\| *\\d+ *\\| *([\\d.]+) % *\\|.*\\|$`, 'm');

function settings() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      since: { type: 'string', default: 'origin/main' },
      record: { type: 'boolean', default: false },
      sample: { type: 'string' },
      workers: { type: 'string', default: String(availableParallelism()) },
    },
  });
  const folders = positionals.length > 0 ? positionals : changedSince(values.since);
  for (const folder of folders)
    if (!existsSync(homeOf(folder))) throw new Error(`There is no folder ${homeOf(folder)}.`);
  const sample = values.sample === undefined ? undefined : Number(values.sample);
  if (sample !== undefined && !(Number.isInteger(sample) && sample > 0))
    throw new Error('--sample is a whole number above 0: one of so many passages is changed.');
  return { folders, isRecorded: values.record, workers: Number(values.workers), sample };
}

/** What is changed, as StrykerJS takes it: the folder, or the lines of one of `sample` passages. */
const changedIn = (folder, sample) =>
  sample === 1
    ? [`${homeOf(folder)}/**/*.ts`, '!**/*.d.ts', `!${OF_BROWSERS}**`]
    : passagesOf(folder, sample).flatMap(({ file, passages }) =>
        passages.map(({ first, last }) => `${file}:${first}-${last}`),
      );

function changedSince(revision) {
  const names = execFileSync('git', ['diff', '--name-only', revision, '--', 'lib', 'packages'], {
    encoding: 'utf8',
  });
  const folders = Array.from(
    names.matchAll(/^(?:lib|packages)\/(\w+)\//gm),
    ([, folder]) => folder,
  );
  const text = readFileSync(TABLE, 'utf8');
  return [...new Set(folders)].filter((folder) => rowOf(folder).test(text));
}

/** The tests of a folder are those in the folder of the same name. All others would take hours, and a folder should not lean on them. */
function testsOf(folder) {
  const seconds = JSON.parse(readFileSync('test/times.json', 'utf8'));
  const homes = [`${folder}/`, ...(ALSO_TESTED_IN[folder] ?? [])].map((home) => `test/${home}`);
  const unit = new Set(specsOf('unit'));
  const specs = specsOf(OF_OPERATORS.has(folder) ? 'all' : 'main').filter(
    (spec) =>
      homes.some((home) => spec.startsWith(home)) &&
      !NOTICE_NOTHING.test(spec) &&
      (WITHOUT_SERVERS.has(folder) ? unit.has(spec) : (seconds[spec] ?? 0) <= LONGEST_S),
  );
  const timeoutMs = specs.every((spec) => unit.has(spec))
    ? TEST_TIMEOUT_MS.unit
    : TEST_TIMEOUT_MS.servers;
  return { specs, timeoutMs };
}

function mutationTestOf(folder, workers, sample) {
  const jest = Object.fromEntries(
    Object.entries(jestConfig).filter(([name]) => !LEFT_OUT.has(name)),
  );
  const { specs, timeoutMs } = testsOf(folder);
  return new Stryker({
    mutate: changedIn(folder, sample),
    testRunner: 'jest',
    testRunnerNodeArgs: ['--experimental-vm-modules'],
    jest: {
      projectType: 'custom',
      enableFindRelatedTests: false,
      config: {
        ...jest,
        globalSetup: null, // the runner would add that of jest.config.js
        testEnvironment: '@stryker-mutator/jest-runner/jest-env/node',
        testTimeout: timeoutMs,
        testMatch: specs.map((spec) => `<rootDir>/${spec}`),
      },
    },
    coverageAnalysis: 'perTest',
    ignoreStatic: true,
    incremental: true,
    incrementalFile: `.stryker/${folder}-${sample}.json`,
    tempDirName: '.stryker/tmp',
    ignorePatterns: ['/.stryker', '/build', '/dist', '/coverage', '/test/claims/apps/templates'],
    concurrency: workers,
    timeoutMS: 5_000,
    dryRunTimeoutMinutes: 30,
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

/** In points: a mutant that a busy machine kills by its time limit may survive on another one. */
const TOLERANCE = 2;

/** The same of a sample: where code has moved, other lines are in it. */
const TOLERANCE_OF_SAMPLES = 5;

/** The score of a folder in the documentation, and the sample that it was measured with. */
function recorded(folder) {
  const [row, score] = rowOf(folder).exec(readFileSync(TABLE, 'utf8')) ?? [];
  const [, sample] = /--sample (\d+)/.exec(row) ?? [];
  return { score: Number(score ?? 0), sample: Number(sample ?? 1) };
}

async function record({ folder, mutants, killed, score, sample }) {
  const text = readFileSync(TABLE, 'utf8');
  const how = `npm run test:mutation${sample > 1 ? ` -- ${folder} --sample ${sample}` : ''}`;
  const row = `| \`${homeOf(folder)}\` | ${mutants} | ${killed} | ${score.toFixed(1)} % | \`${how}\` |`;
  if (!rowOf(folder).test(text)) throw new Error(`${TABLE} has no row for ${homeOf(folder)}.`);
  const options = await resolveConfig(TABLE);
  writeFileSync(
    TABLE,
    await format(text.replace(rowOf(folder), row), { ...options, filepath: TABLE }),
  );
}

const { folders, isRecorded, workers, sample } = settings();
const scores = [];
for (const folder of folders) {
  const taken = sample ?? recorded(folder).sample;
  const withoutServers = await mutationTestOf(folder, workers, taken);
  const mutants =
    folder === 'store'
      ? await testFurther(withoutServers, { folder, sample: taken, workers })
      : withoutServers;
  const counted = mutants.filter(({ status }) => COUNTED.has(status));
  const killed = counted.filter(({ status }) => KILLED.has(status));
  const score = counted.length === 0 ? 100 : (100 * killed.length) / counted.length;
  scores.push({ folder, mutants: counted.length, killed: killed.length, score, sample: taken });
}
for (const { folder, mutants, killed, score } of scores)
  console.log(`mutation: ${homeOf(folder)}: ${score.toFixed(1)} % (${killed} of ${mutants})`);
if (isRecorded) for (const score of scores) await record(score);
for (const { folder, score, sample: taken } of scores) {
  const least = recorded(folder).score;
  if (score >= least - (taken > 1 ? TOLERANCE_OF_SAMPLES : TOLERANCE)) continue;
  console.error(`mutation: ${homeOf(folder)} is below its ${least} % in ${TABLE}`);
  process.exitCode = 1;
}
