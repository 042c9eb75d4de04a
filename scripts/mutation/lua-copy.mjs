/** A copy of the project in which one Lua file is changed, with what may notice it: worlds of the simulation, and specs on real servers. */
import { spawn } from 'node:child_process';
import { cpSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { compiledProject } from '../compile.mjs';
import { Project, sourceNames } from './project.mjs';
import { Worlds } from './worlds.mjs';

/** What the model of Redis does not know, a real server may. */
const UNKNOWN_TO_THE_MODEL = /\b(UnsupportedLua|UnknownCommand): /;

const LONGEST_RUN_MS = 300_000;

export class LuaCopy {
  #project = new Project('.', sourceNames(), []);
  #compiled = join(this.#project.root, 'compiled');
  #worlds = new Worlds(this.#compiled);

  constructor() {
    cpSync(compiledProject(), this.#compiled, { recursive: true, verbatimSymlinks: true });
  }

  write(file, text) {
    for (const folder of [this.#project.root, this.#compiled])
      writeFileSync(join(folder, file), text);
  }

  /** What the worlds of these seeds break first, if they break anything. */
  async violation(seeds) {
    const { violation } = await this.#worlds.play(seeds);
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
    this.#project.remove();
  }

  #run(specs, options = ['--bail=1']) {
    const jest = resolve('node_modules/jest/bin/jest.js');
    const child = spawn(
      process.execPath,
      [
        ...['--experimental-vm-modules', jest, '--config', 'mutation.config.mjs', '--forceExit'],
        ...['--maxWorkers=3', ...options, '--runTestsByPath', ...specs],
      ],
      {
        cwd: this.#project.root,
        detached: true,
        env: {
          ...process.env,
          HOLDFAST_PART: 'all',
          HOLDFAST_COMPILED: this.#compiled,
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
