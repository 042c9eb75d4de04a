/**
 * `npm test`: makes sure a Redis server program is here, then runs jest. Arguments go to jest: `npm test -- test/support` runs one folder.
 * Ours are `--part unit` (scripts/test-parts.mjs; default: main, or with paths all) and `--record-times` (test/support/sequencer.mjs).
 */
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureChromium } from './chromium.mjs';
import { ensurePromtool } from './promtool.mjs';
import { ensureRedisServer } from './redis-server.mjs';
import { buildSite } from './site.mjs';
import { PARTS } from './test-parts.mjs';

const projectRoot = dirname(dirname(fileURLToPath(import.meta.url)));
const jest = join(projectRoot, 'node_modules', 'jest', 'bin', 'jest.js');

function readArguments(args) {
  const forJest = [...args];
  const env = {};
  const at = forJest.indexOf('--part');
  if (at >= 0) [, env.HOLDFAST_PART] = forJest.splice(at, 2);
  const times = forJest.indexOf('--record-times');
  if (times >= 0) {
    forJest.splice(times, 1);
    env.HOLDFAST_RECORD_TIMES = 'yes';
  }
  const namesPaths = forJest.some((argument) => !argument.startsWith('-'));
  env.HOLDFAST_PART ??= namesPaths ? 'all' : 'main';
  if (!PARTS.includes(env.HOLDFAST_PART)) {
    throw new Error(`test: --part is one of ${PARTS.join(', ')}`);
  }
  if (['busy', 'soak'].includes(env.HOLDFAST_PART)) {
    env.HOLDFAST_SOAK = 'yes';
    // Each of them keeps the machine busy, and measures how late it is.
    forJest.unshift('--maxWorkers=2');
  }
  if (env.HOLDFAST_PART === 'long') env.PROMTOOL_BIN = ensurePromtool();
  if (env.HOLDFAST_PART === 'hostile') {
    env.HOLDFAST_CASES = process.env.HOLDFAST_CASES ?? '1000000';
    // A property has one time limit, however many inputs it is tried with.
    forJest.unshift('--testTimeout=7200000', '--maxWorkers=2');
  }
  if (['browser', 'site'].includes(env.HOLDFAST_PART)) env.CHROMIUM_BIN = ensureChromium();
  if (env.HOLDFAST_PART === 'site') buildSite();
  // They compute, and wait for nothing: more of them at once take longer.
  if (env.HOLDFAST_PART === 'unit') forJest.unshift('--maxWorkers=3');
  // A few specs reach fewer lines than all of them.
  if (namesPaths) forJest.unshift('--coverageThreshold={}');
  return { env, forJest };
}

function runJest(serverProgram, { env, forJest }) {
  const command = ['--experimental-vm-modules', jest, ...forJest];
  console.log(`test: node ${command.join(' ').replace(jest, 'jest')} (${env.HOLDFAST_PART})`);
  const child = spawn(process.execPath, command, {
    cwd: projectRoot,
    env: { ...process.env, ...env, REDIS_SERVER_BIN: serverProgram },
    stdio: 'inherit',
  });
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
  child.once('error', (error) => {
    console.error(`test: jest did not start: ${error.message}`);
    process.exitCode = 1;
  });
  child.once('exit', (code, signal) => {
    if (signal) console.error(`test: jest was ended by ${signal}`);
    process.exitCode = code ?? 1;
  });
}

try {
  const settings = readArguments(process.argv.slice(2));
  runJest(ensureRedisServer(), settings);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
