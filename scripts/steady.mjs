/**
 * `npm run test:steady -- --runs 20 --hogs 4`: runs all of `npm test` that many times, beside as many processes that keep a core busy. No run
 * ends for a failure: all are printed at the end, by suite and test, with the runs they were in. The order of the specs is random, by a
 * seed that is printed; `--seed N` is that of the first run. What follows goes to the tests: `-- --runs 5 test/queue`.
 */
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdtempSync, openSync, closeSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const projectRoot = dirname(dirname(fileURLToPath(import.meta.url)));
const MOST_LINES = 12;
/** Ends with the process that started it, whatever ended that. */
const HOG =
  'const { ppid } = process; while (process.ppid === ppid) for (let i = 0; i < 1e8; i += 1);';

function settingsOf(args) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      runs: { type: 'string', default: '20' },
      hogs: { type: 'string', default: '0' },
      seed: { type: 'string' },
    },
  });
  const [runs, hogs] = [Number(values.runs), Number(values.hogs)];
  const seed = Number(values.seed ?? randomInt(2 ** 31));
  if (!(Number.isInteger(runs) && runs > 0)) throw new Error('--runs is a whole number above 0.');
  if (!(Number.isInteger(hogs) && hogs >= 0)) throw new Error('--hogs is a whole number.');
  if (!Number.isInteger(seed)) throw new Error('--seed is a whole number.');
  return { runs, hogs, seed, forTests: positionals };
}

/** Runs the tests once; answers what failed. */
async function runOnce(number, seed, forTests, folder) {
  const [report, log] = [join(folder, `${number}.json`), join(folder, `${number}.log`)];
  const output = openSync(log, 'w');
  const args = ['scripts/test.mjs', ...forTests, '--json', `--outputFile=${report}`];
  const since = performance.now();
  const child = spawn(process.execPath, args, {
    cwd: projectRoot,
    env: { ...process.env, HOLDFAST_ORDER_SEED: String(seed) },
    stdio: ['ignore', output, output],
  });
  const code = await new Promise((resolve) => child.once('close', resolve));
  closeSync(output);
  const { passed, failures } = readReport(report, `ended with ${code}, see ${log}`);
  if (code !== 0 && failures.length === 0)
    failures.push({ suite: 'jest', test: `ended with ${code}`, message: `see ${log}` });
  const seconds = ((performance.now() - since) / 1_000).toFixed(0);
  console.log(
    `steady: run ${number}, seed ${seed}: ${passed} passed, ${failures.length} failed, ${seconds} s`,
  );
  return failures.map((failure) => ({ ...failure, run: number, seed }));
}

function readReport(file, otherwise) {
  try {
    const { numPassedTests, testResults } = JSON.parse(readFileSync(file, 'utf8'));
    return { passed: numPassedTests, failures: testResults.flatMap(failuresOf) };
  } catch {
    return { passed: 0, failures: [{ suite: 'jest', test: otherwise, message: '' }] };
  }
}

function failuresOf({ name, status, message, assertionResults }) {
  const suite = relative(projectRoot, name);
  const failed = assertionResults.filter((result) => result.status === 'failed');
  // One that does not load, or whose last hook fails, has no test to name.
  if (failed.length === 0)
    return status === 'failed' ? [{ suite, test: 'the suite itself', message }] : [];
  return failed.map(({ fullName, failureMessages }) => ({
    suite,
    test: fullName,
    message: failureMessages.join('\n'),
  }));
}

function print(failures, runs) {
  const byTest = new Map();
  for (const failure of failures) {
    const name = `${failure.suite}: ${failure.test}`;
    byTest.set(name, [...(byTest.get(name) ?? []), failure]);
  }
  for (const [name, all] of byTest) {
    const where = all.map(({ run, seed }) => `${run} (seed ${seed})`).join(', ');
    console.log(`\nsteady: ${name}\n  in ${all.length} of ${runs} runs: ${where}`);
    for (const line of all[0].message.split('\n').slice(0, MOST_LINES)) console.log(`  ${line}`);
  }
  const red = new Set(failures.map(({ run }) => run)).size;
  console.log(`\nsteady: ${runs - red} of ${runs} runs were green`);
}

try {
  const { runs, hogs, seed, forTests } = settingsOf(process.argv.slice(2));
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-steady-'));
  console.log(`steady: ${runs} runs beside ${hogs} busy processes; their output is in ${folder}`);
  const busy = Array.from({ length: hogs }, () => spawn(process.execPath, ['-e', HOG]));
  const failures = [];
  for (let run = 0; run < runs; run += 1)
    failures.push(...(await runOnce(run + 1, seed + run, forTests, folder)));
  for (const hog of busy) hog.kill('SIGKILL');
  print(failures, runs);
  if (failures.length > 0) process.exitCode = 1;
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
