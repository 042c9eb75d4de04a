/** The processes that samples and tests of packages start: a Redis server, and programs that use it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { constants } from 'node:os';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { ensureRedisServer } from './redis-server.mjs';

const running = new Set();

/** Starts a server that keeps its data in memory only, and resolves with its URL. */
export async function startRedis(log) {
  const program = ensureRedisServer(log);
  const port = await freePort();
  log(`starting a Redis server on port ${port}`);
  const inMemory = ['--save', '', '--appendonly', 'no'];
  const server = start(program, ['--port', String(port), '--bind', '127.0.0.1', ...inMemory]);
  await firstMatch(server, /Ready to accept connections/);
  return `redis://127.0.0.1:${port}`;
}

/** Starts a Nest application that listens on the port that PORT names. */
export async function startNest(program) {
  const port = await freePort();
  const child = startProgram(program, { PORT: String(port) });
  await firstMatch(child, /Nest application successfully started/);
  // Nest says so before it listens.
  while (!(await accepts(port))) {
    if (!running.has(child)) throw new Error(`${program} ended before it listened`);
    await setTimeout(20);
  }
  return { url: `http://127.0.0.1:${port}`, stop: () => stop(child) };
}

/** Starts a program of Node, which gets the options that this process has: a test runs TypeScript. */
export const startProgram = (program, env) =>
  start(process.execPath, [...process.execArgv, program], env);

/** Runs the program of this name and kills what it has started, however it ends. An error is told, and is exit code 1. */
export async function runToTheEnd(name, main) {
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => {
      killAll();
      process.exit(128 + constants.signals[signal]);
    });
  }
  try {
    await main();
  } catch (error) {
    console.error(`${name}: ${error.message}`);
    process.exitCode = 1;
  } finally {
    killAll();
  }
}

/** Does not wait. */
function killAll() {
  for (const child of running) child.kill('SIGKILL');
}

function start(program, args, env) {
  const child = spawn(program, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

async function stop(child) {
  if (!running.has(child)) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}

/** The match in the first line of output that has one; rejects with the output when the child ends before. */
function firstMatch(child, pattern) {
  return new Promise((resolve, reject) => {
    const output = [];
    createInterface({ input: child.stdout }).on('line', (line) => {
      output.push(line);
      const match = pattern.exec(line);
      if (match) resolve(match);
    });
    child.once('error', reject);
    child.once('close', () => {
      reject(new Error([`${child.spawnfile} ended before it was ready`, ...output].join('\n')));
    });
  });
}

/** Whether a server listens on the port. */
async function accepts(port) {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
