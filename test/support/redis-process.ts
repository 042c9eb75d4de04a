import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { findRedisServer, INSTALL_HINT } from '../../scripts/redis-server.mjs';
import { guardAgainstOrphans } from './orphan-guard.js';

const START_WITHIN_MS = 15_000;
const STOP_WITHIN_MS = 2_000;
const READY = /Ready to accept connections|Sentinel ID is/;
const PORT_TAKEN = /Address already in use|Failed listening on port/i;

/** What a server program is started with. */
export interface RedisRun {
  /** Where its `redis.conf` is. */
  readonly folder: string;
  readonly mode: 'server' | 'sentinel';
  /** Variables on top of ours. */
  readonly environment: Readonly<Record<string, string>>;
}

/** The server could not start because its port is taken. */
export class PortTakenError extends Error {
  override readonly name = 'PortTakenError';
}

/** One run of the server program, from its start to its exit. It does not keep this process alive. */
export class RedisProcess {
  readonly pid: number;
  /** Resolves when the process has ended, whatever ended it. */
  readonly exited: Promise<void>;
  readonly #child: ChildProcess;
  #running = true;

  private constructor(child: ChildProcess, pid: number, exited: Promise<void>) {
    this.pid = pid;
    this.#child = child;
    this.exited = exited.then(() => {
      this.#running = false;
    });
  }

  get isRunning(): boolean {
    return this.#running;
  }

  /**
   * Starts the program on the `redis.conf` in its folder and resolves once it accepts connections.
   *
   * @throws PortTakenError if another process has the port
   */
  static async start({ folder, mode, environment }: RedisRun): Promise<RedisProcess> {
    const program = findRedisServer();
    if (program === undefined) throw new Error(`No Redis server was found.\n${INSTALL_HINT}`);
    const child = spawn(program, ['redis.conf', ...(mode === 'sentinel' ? ['--sentinel'] : [])], {
      cwd: folder,
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const exited = new Promise<void>((resolve) => {
      child.once('exit', () => {
        resolve();
      });
      child.once('error', () => {
        resolve();
      });
    });
    if (child.pid !== undefined) guardAgainstOrphans(child.pid, folder, exited);
    await becomesReady(child);
    letGo(child);
    return new RedisProcess(child, child.pid as number, exited);
  }

  /** Ends the process as an operator does; one that does not listen is killed after two seconds. */
  async terminate(): Promise<void> {
    this.#child.kill('SIGTERM');
    const impatience = setTimeout(() => this.#child.kill('SIGKILL'), STOP_WITHIN_MS);
    await this.exited.finally(() => {
      clearTimeout(impatience);
    });
  }

  /** Ends the process as a power cut does. */
  async kill(): Promise<void> {
    const keepsLoopAlive = setTimeout(() => undefined, START_WITHIN_MS);
    this.#child.kill('SIGKILL');
    await this.exited.finally(() => {
      clearTimeout(keepsLoopAlive);
    });
  }

  /** Sends a signal and does not wait for its effect. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(signal);
  }
}

/** Writes the configuration that `RedisProcess.start(folder)` reads. */
export function writeConfig(folder: string, lines: readonly string[]): void {
  writeFileSync(join(folder, 'redis.conf'), lines.map((line) => `${line}\n`).join(''));
}

function becomesReady(child: ChildProcess): Promise<void> {
  let output = '';
  return new Promise((resolve, reject) => {
    const tooLate = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`The Redis server was not ready after ${START_WITHIN_MS} ms:\n${output}`));
    }, START_WITHIN_MS);
    const read = (chunk: Buffer): void => {
      output += chunk.toString();
      if (!READY.test(output)) return;
      clearTimeout(tooLate);
      resolve();
    };
    child.stdout?.on('data', read);
    child.stderr?.on('data', read);
    child.once('error', (error) => {
      clearTimeout(tooLate);
      reject(error);
    });
    // 'close' and not 'exit': by then all of the output has been read.
    child.once('close', (code) => {
      clearTimeout(tooLate);
      const Failure = PORT_TAKEN.test(output) ? PortTakenError : Error;
      reject(new Failure(`The Redis server ended with code ${String(code)}:\n${output}`));
    });
  });
}

/** From here on the output is read and dropped, and neither it nor the process keeps the event loop alive. */
function letGo(child: ChildProcess): void {
  for (const output of [child.stdout, child.stderr]) {
    output?.removeAllListeners('data').resume();
    (output as Socket | null)?.unref();
  }
  child.unref();
}
