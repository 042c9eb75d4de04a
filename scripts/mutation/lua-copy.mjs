/** A copy of the project in which one Lua file is changed, with what may notice it: worlds of the simulation, and specs on real servers. */
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { compiledProject } from '../compile.mjs';

const LEFT_OUT = new Set([
  ...['node_modules', '.git', '.stryker', '.mutation'],
  ...['dist', 'build', 'coverage', 'pictures'],
]);

/** Where the compiled project is in the copy: worlds are played there, and child processes of specs run there. */
const COMPILED = 'compiled';

/** A world leaves much behind that is garbage at its end; one that does not end may leave any amount. */
const MEMORY = { maxYoungGenerationSizeMb: 64, maxOldGenerationSizeMb: 1024 };

/** Without a change, a world takes 30 ms. */
const LONGEST_WORLD_MS = 30_000;

/** What the model of Redis does not know, a real server may. */
const UNKNOWN_TO_THE_MODEL = /\b(UnsupportedLua|UnknownCommand): /;

const TEST_TIMEOUT_MS = 20_000;
const LONGEST_RUN_MS = 300_000;

const CONFIG = `import config from './jest.config.js';
const { testSequencer, coverageThreshold, globalSetup, ...others } = config;
export default { ...others, testTimeout: ${TEST_TIMEOUT_MS} };
`;

export class LuaCopy {
  #folder = mkdtempSync(join(tmpdir(), 'holdfast-lua-'));

  constructor() {
    for (const entry of readdirSync('.'))
      if (!LEFT_OUT.has(entry)) cpSync(entry, join(this.#folder, entry), { recursive: true });
    symlinkSync(resolve('node_modules'), join(this.#folder, 'node_modules'));
    const compiled = join(this.#folder, COMPILED);
    cpSync(compiledProject(), compiled, { recursive: true, verbatimSymlinks: true });
    writeFileSync(join(this.#folder, 'lua.config.mjs'), CONFIG);
  }

  write(file, text) {
    for (const part of ['.', COMPILED]) writeFileSync(join(this.#folder, part, file), text);
  }

  /** What the worlds of these seeds break first, if they break anything. */
  async violation({ from, to }) {
    const player = join(this.#folder, COMPILED, 'test/techniques/simulation/lua-player.js');
    const worker = new Worker(pathToFileURL(player), {
      resourceLimits: MEMORY,
      workerData: { from, to },
    });
    const violation = await new Promise((done) => {
      const isStuck = () => done('a world did not end');
      let stuck = setTimeout(isStuck, LONGEST_WORLD_MS);
      worker.on('message', (message) => {
        clearTimeout(stuck);
        if (message.hasEnded) done(message.violation);
        else stuck = setTimeout(isStuck, LONGEST_WORLD_MS);
      });
      worker.once('error', (error) => done(String(error)));
      worker.once('exit', () => clearTimeout(stuck));
    });
    await worker.terminate();
    return UNKNOWN_TO_THE_MODEL.test(violation) ? undefined : violation;
  }

  /** The first red test of these specs, if there is one. Red twice: once may be what a busy machine did. */
  async redTest(specs) {
    if (specs.length === 0) return undefined;
    const first = await this.#run(specs);
    if (!first.failed) return undefined;
    const red = failedIn(first);
    const { failed, output } = await this.#run(red.length > 0 ? red : specs);
    if (!failed) return undefined;
    const [name = 'no test, but the run'] = /(?<=● ).+/.exec(output) ?? [];
    return name.trim();
  }

  /** Those of the specs that are red. */
  async redSpecs(specs) {
    return failedIn(await this.#run(specs, []));
  }

  remove() {
    rmSync(this.#folder, { recursive: true });
  }

  #run(specs, options = ['--bail=1']) {
    const jest = resolve('node_modules/jest/bin/jest.js');
    const child = spawn(
      process.execPath,
      [
        ...['--experimental-vm-modules', jest, '--config', 'lua.config.mjs', '--forceExit'],
        ...['--maxWorkers=3', ...options, '--runTestsByPath', ...specs],
      ],
      {
        cwd: this.#folder,
        detached: true,
        env: {
          ...process.env,
          HOLDFAST_PART: 'all',
          HOLDFAST_COMPILED: join(this.#folder, COMPILED),
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (data) => (output += String(data)));
    return new Promise((done) => {
      const limit = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), LONGEST_RUN_MS);
      child.once('close', (code) => {
        clearTimeout(limit);
        done({ failed: code !== 0, output });
      });
    });
  }
}

const failedIn = ({ output }) => Array.from(output.matchAll(/^FAIL (\S+)/gm), ([, spec]) => spec);
