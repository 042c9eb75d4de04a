/** Runs specs in a copy of the project, with one change switched on in their process and in those that they start. */
import { spawn } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { SWITCH } from './changes.mjs';

const LEFT_OUT = new Set(['node_modules', '.git', '.stryker', 'dist', 'build', 'coverage']);

/** A change may have a test wait for what never comes. */
const TEST_TIMEOUT_MS = 20_000;

/** A run that takes longer says nothing. */
const LONGEST_RUN_MS = 600_000;

/** Where each spec writes which changes it has come by. */
const COVERAGE = 'mutation-coverage';

const NOTE_COVERAGE = `import { afterAll, expect } from '@jest/globals';
import { writeFileSync } from 'node:fs';
afterAll(() => {
  const { mutantCoverage } = globalThis.__stryker__ ?? {};
  const ids = Object.keys(mutantCoverage?.static ?? {});
  const name = Buffer.from(expect.getState().testPath).toString('base64url');
  writeFileSync(process.env.MUTATION_COVERAGE + '/' + name, JSON.stringify(ids));
});
`;

const CONFIG = `import config from './jest.config.js';
const { testSequencer, coverageThreshold, ...others } = config;
export default {
  ...others,
  testTimeout: ${TEST_TIMEOUT_MS},
  setupFilesAfterEnv: process.env.MUTATION_COVERAGE ? ['<rootDir>/note-coverage.mjs'] : [],
};
`;

export class Specs {
  #folder = mkdtempSync(join(tmpdir(), 'holdfast-mutation-'));

  constructor(files) {
    for (const entry of readdirSync('.'))
      if (!LEFT_OUT.has(entry)) cpSync(entry, join(this.#folder, entry), { recursive: true });
    symlinkSync(resolve('node_modules'), join(this.#folder, 'node_modules'));
    for (const { name, content } of files) writeFileSync(join(this.#folder, name), content);
    writeFileSync(join(this.#folder, 'note-coverage.mjs'), NOTE_COVERAGE);
    writeFileSync(join(this.#folder, 'mutation.config.mjs'), CONFIG);
  }

  /** Of each spec, the ids of the changes that it comes by, without any change. One that is red then says nothing, and is left out. */
  async covered(specs) {
    const folder = join(this.#folder, COVERAGE);
    mkdirSync(folder, { recursive: true });
    const { failed, output } = await this.#run(specs, { MUTATION_COVERAGE: folder }, []);
    const red = new Set(Array.from(output.matchAll(/^FAIL (\S+)/gm), ([, spec]) => spec));
    if (failed && red.size === 0) throw new Error(`Without any change:\n${output}`);
    for (const spec of red)
      console.log(`mutation: left out, for it is red without any change: ${spec}`);
    const covered = readdirSync(folder).map((name) => {
      const path = Buffer.from(basename(name), 'base64url').toString();
      const ids = JSON.parse(readFileSync(join(folder, name), 'utf8'));
      return [path.slice(path.indexOf('/test/') + 1), new Set(ids)];
    });
    return new Map(covered.filter(([spec]) => !red.has(spec)));
  }

  /** The first test that is red with this change, if there is one. Red twice: once may be what a busy machine did. */
  async redWith({ id }, specs) {
    const run = () => this.#run(specs, { [SWITCH]: id }, ['--bail=1']);
    if (!(await run()).failed) return undefined;
    const { failed, output } = await run();
    if (!failed) return undefined;
    const [name = 'no test, but the run'] = /(?<=● ).+/.exec(output) ?? [];
    return name.trim();
  }

  remove() {
    rmSync(this.#folder, { recursive: true });
  }

  #run(specs, env, options) {
    const jest = resolve('node_modules/jest/bin/jest.js');
    const child = spawn(
      process.execPath,
      [
        ...['--experimental-vm-modules', jest, '--config', 'mutation.config.mjs', '--forceExit'],
        ...['--maxWorkers=2', ...options, '--runTestsByPath', ...specs],
      ],
      {
        cwd: this.#folder,
        detached: true,
        env: { ...process.env, HOLDFAST_PART: 'all', ...env },
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
