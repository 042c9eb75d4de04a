/** Plays worlds of the simulation on the library with one change switched on: the first of those that are played at each change of the project. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { SWITCH } from './changes.mjs';

/** Of each profile, so many worlds. */
const SEEDS = 3;

/** A world leaves much behind that is garbage at its end. */
const YOUNG_MB = 64;

/** So much longer than without a change is long enough to say that it does not end. */
const TIMES_AS_LONG = 5;
const AT_LEAST_MS = 30_000;

export class Worlds {
  #compiled;
  #usualMs = 600_000 / TIMES_AS_LONG;

  /** The folder of a compiled project with the switches. */
  constructor(compiled) {
    this.#compiled = compiled;
  }

  /** Without any change: the ids of those that the worlds come by. */
  async covered() {
    const since = performance.now();
    const { violation, covered } = await this.#play('');
    if (violation !== undefined) throw new Error(`Without any change: ${violation}`);
    this.#usualMs = performance.now() - since;
    return new Set(covered);
  }

  /** What breaks with this change, if anything does. */
  async judge({ id }) {
    const since = performance.now();
    const { violation, hangs = false } = await this.#play(id);
    const red = violation === undefined ? null : { test: violation, hangs };
    return { red, seconds: (performance.now() - since) / 1_000 };
  }

  #play(id) {
    const file = pathToFileURL(join(this.#compiled, 'test/techniques/simulation/mutant-player.js'));
    const worker = new Worker(file, {
      env: { ...process.env, [SWITCH]: id },
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
      workerData: { seeds: SEEDS },
    });
    return new Promise((done) => {
      const stuck = setTimeout(
        () => {
          done({ violation: 'the worlds did not end', hangs: true });
          void worker.terminate();
        },
        Math.max(AT_LEAST_MS, TIMES_AS_LONG * this.#usualMs),
      );
      worker.once('message', (found) => {
        done(found);
        void worker.terminate();
      });
      worker.once('error', (error) => done({ violation: String(error) }));
      worker.once('exit', () => {
        clearTimeout(stuck);
        done({ violation: 'the thread ended' });
      });
    });
  }
}
