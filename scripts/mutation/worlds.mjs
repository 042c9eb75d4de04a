/** Plays worlds of the simulation on a library with one change in it: those that are played at each change of the project, or the first of them. */
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { compiledProject, compiledText } from '../compile.mjs';
import { SWITCH } from './changes.mjs';

/** A world leaves much behind that is garbage at its end. */
const YOUNG_MB = 64;

/** So much longer than without a change is long enough to say that it does not end. */
const TIMES_AS_LONG = 5;
const AT_LEAST_MS = 60_000;

/** A compiled project with the switches in it. */
export class Worlds {
  #folder = mkdtempSync(join(tmpdir(), 'holdfast-mutation-'));
  #usualMs = new Map();

  constructor(files) {
    for (const part of ['lib', 'test', 'package.json'])
      cpSync(join(compiledProject(), part), join(this.#folder, part), { recursive: true });
    symlinkSync(resolve('node_modules'), join(this.#folder, 'node_modules'));
    for (const { name, content } of files)
      writeFileSync(join(this.#folder, name.replace(/ts$/, 'js')), compiledText(name, content));
  }

  /** Without any change: the ids of those that the worlds come by. */
  async covered(seeds) {
    const since = performance.now();
    const { violation, covered } = await this.#play('', seeds);
    if (violation !== undefined) throw new Error(`Without any change: ${violation}`);
    this.#usualMs.set(seeds, performance.now() - since);
    return new Set(covered);
  }

  /** What breaks with this change, if anything does. */
  async violationWith({ id }, seeds) {
    const { violation } = await this.#play(id, seeds);
    return violation;
  }

  remove() {
    rmSync(this.#folder, { recursive: true });
  }

  #play(id, seeds) {
    const file = pathToFileURL(join(this.#folder, 'test/techniques/simulation/mutant-player.js'));
    const worker = new Worker(file, {
      env: { ...process.env, [SWITCH]: id },
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
      workerData: { seeds },
    });
    const usualMs = this.#usualMs.get(seeds) ?? 2 ** 30 / TIMES_AS_LONG;
    return new Promise((done) => {
      const stuck = setTimeout(
        () => {
          void worker.terminate();
          done({ violation: 'the worlds did not end', covered: [] });
        },
        Math.max(AT_LEAST_MS, TIMES_AS_LONG * usualMs),
      );
      worker.once('message', done);
      worker.once('error', (error) => done({ violation: String(error), covered: [] }));
      worker.once('exit', () => {
        clearTimeout(stuck);
        done({ violation: 'the thread ended', covered: [] });
      });
    });
  }
}
