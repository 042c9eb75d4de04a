/** Runs a spec in a process of its own: once with all changes off, or some of its tests with one change after the other. */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { notesOf } from './runner.mjs';

/** Without a word for so long, and longer when its tests take long, a process hangs. */
const SILENCE_MS = 30_000;
const SURVEY_MS = 240_000;

export class Specs {
  #root;
  #workers;
  #running = new Set();

  constructor({ root }, workers) {
    this.#root = root;
    this.#workers = workers;
  }

  /** Of each spec, which of the wanted changes each test comes by, and how long it takes. Nothing of a spec that cannot run here. */
  async survey(specs, wanted) {
    const notes = await this.#run(specs, { wanted }, SURVEY_MS);
    return notes.map((of) => of.find(({ tests }) => tests !== undefined));
  }

  /** What its tests say of each change, by its id. A change under which the process ends, or that leaves something behind, is tried anew. */
  async judge(spec, changes) {
    const verdicts = new Map();
    let left = changes;
    while (left.length > 0) {
      const [notes] = await this.#run([spec], { changes: left }, silenceOf(left));
      for (const { id, red, seconds } of notes)
        if (red !== undefined) verdicts.set(id, { red, seconds });
      const odd = left.find(({ id }) => notes.some((note) => note.id === id) && !verdicts.has(id));
      if (odd === undefined) break;
      if (odd.isAgain) {
        const unclear = notes.find((note) => note.unclear !== undefined)?.unclear;
        const red = unclear ?? { test: 'the process ended', hangs: notes.isSilent };
        return verdicts.set(odd.id, { red, seconds: 0 });
      }
      const [[, verdict] = []] = await this.judge(spec, [{ ...odd, isAgain: true }]);
      if (verdict !== undefined) verdicts.set(odd.id, verdict);
      left = left.filter((change) => change !== odd && !verdicts.has(change.id));
    }
    return verdicts;
  }

  /** What a test says of a change that is on while the modules load. Whatever hangs has to do so twice. */
  async judgeFromStart(spec, change) {
    const since = performance.now();
    const judged = async () => {
      const [notes] = await this.#run([spec], { reload: change }, silenceOf([change]));
      return (notes[0] ?? { red: { test: 'the process ended', hangs: notes.isSilent } }).red;
    };
    let red = await judged();
    if (red?.hangs) red = await judged();
    return { red, seconds: (performance.now() - since) / 1_000 };
  }

  stop() {
    for (const child of this.#running) end(child);
  }

  /** What is noted of each of these specs. */
  async #run(specs, task, silenceMs) {
    const notes = mkdtempSync(join(tmpdir(), 'holdfast-mutation-notes-'));
    const taskFile = join(notes, 'task.json');
    writeFileSync(taskFile, JSON.stringify(task));
    const child = spawn(
      process.execPath,
      [
        ...['--experimental-vm-modules', resolve('node_modules/jest/bin/jest.js')],
        ...['--config', 'mutation.config.mjs', '--forceExit', '--silent'],
        ...[`--maxWorkers=${specs.length > 1 ? this.#workers : 1}`, '--runTestsByPath', ...specs],
      ],
      {
        cwd: this.#root,
        detached: true,
        env: {
          ...process.env,
          ...{ HOLDFAST_PART: 'all', MUTATION_TASK: taskFile, MUTATION_NOTES: notes },
        },
        stdio: ['ignore', 'ignore', process.env.MUTATION_DEBUG ? 'inherit' : 'ignore'],
      },
    );
    this.#running.add(child);
    const isSilent = await endOf(child, notes, silenceMs);
    this.#running.delete(child);
    const found = specs.map((spec) => {
      const file = notesOf(notes, spec);
      const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
      return Object.assign(
        lines.map((line) => JSON.parse(line)),
        { isSilent },
      );
    });
    rmSync(notes, { recursive: true });
    return found;
  }
}

/** Longer for the tests that a change is tried with, and when all run for the first time. */
function silenceOf(changes) {
  const longest = Math.max(...changes.map(({ tests }) => sum(tests.map(({ ms }) => ms))));
  return SILENCE_MS + 5 * longest;
}

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

function end({ pid }) {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

/** Resolves to whether the process had to be ended. */
function endOf(child, notes, silenceMs) {
  return new Promise((done) => {
    let isSilent = false;
    const stop = () => {
      isSilent = true;
      end(child);
    };
    let limit = setTimeout(stop, silenceMs);
    const watcher = watch(notes, () => {
      clearTimeout(limit);
      limit = setTimeout(stop, silenceMs);
    });
    child.once('exit', () => {
      clearTimeout(limit);
      watcher.close();
      end(child);
      done(isSilent);
    });
  });
}
