/** Plays worlds of the simulation on a changed library. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { SWITCH } from './changes.mjs';

/** The first of those that are played at each change of the project. */
const SEEDS = { from: 1, to: 3 };

/** A world leaves much behind that is garbage at its end; one that does not end may leave any amount. */
const MEMORY = { maxYoungGenerationSizeMb: 64, maxOldGenerationSizeMb: 1024 };

/** Without a change, a world takes 30 ms. */
const LONGEST_WORLD_MS = 30_000;

export class Worlds {
  #player;

  /** The folder of a compiled project. */
  constructor(compiled) {
    this.#player = pathToFileURL(join(compiled, 'test/techniques/simulation/mutant-player.js'));
  }

  /** Without any change: the ids of those that the worlds come by. */
  async covered() {
    const { violation, covered } = await this.play(SEEDS);
    if (violation !== undefined) throw new Error(`Without any change: ${violation}`);
    return new Set(covered);
  }

  /** What breaks with this change switched on, if anything does. */
  async judge({ id }) {
    const since = performance.now();
    const { violation, hangs = false } = await this.play(SEEDS, id);
    const red = violation === undefined ? null : { test: violation, hangs };
    return { red, seconds: (performance.now() - since) / 1_000 };
  }

  /** What the worlds of these seeds of each profile break first, if they break anything. */
  async play(seeds, change = '') {
    const worker = new Worker(this.#player, {
      env: { ...process.env, [SWITCH]: change },
      resourceLimits: MEMORY,
      workerData: seeds,
    });
    const outcome = await new Promise((done) => {
      const stop = () => done({ violation: 'a world did not end', hangs: true });
      let limit = setTimeout(stop, LONGEST_WORLD_MS);
      worker.on('message', (message) => {
        clearTimeout(limit);
        if (message.hasEnded) done(message);
        else limit = setTimeout(stop, LONGEST_WORLD_MS);
      });
      worker.once('error', (error) => done({ violation: String(error) }));
      worker.once('exit', () => {
        clearTimeout(limit);
        done({ violation: 'the thread ended' });
      });
    });
    await worker.terminate();
    return outcome;
  }
}
