/**
 * `npm test`: makes sure a Redis server program is here, then runs jest. Arguments go to jest:
 * `npm test -- test/support` runs one folder, without the coverage that only the whole suite can reach.
 */
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureRedisServer } from './redis-server.mjs';

const projectRoot = dirname(dirname(fileURLToPath(import.meta.url)));
const jest = join(projectRoot, 'node_modules', 'jest', 'bin', 'jest.js');

function jestArguments(args) {
  return args.length === 0 ? ['--coverage'] : ['--coverageThreshold={}', ...args];
}

function runJest(serverProgram, args) {
  const nodeArguments = ['--experimental-vm-modules', jest, ...jestArguments(args)];
  console.log(
    `test: node ${['--experimental-vm-modules', 'jest', ...jestArguments(args)].join(' ')}`,
  );
  const child = spawn(process.execPath, nodeArguments, {
    cwd: projectRoot,
    env: { ...process.env, REDIS_SERVER_BIN: serverProgram },
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
  runJest(ensureRedisServer(), process.argv.slice(2));
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
