/**
 * `npm run simulate:planted -- [name…] --seconds 60`: puts each bug of test/techniques/simulation/planted/ into a copy of the compiled project, and plays
 * worlds from fresh seeds on until one of them breaks a promise or the seconds of processor time are over. Says of each bug whether it was found, by which
 * property, and how soon; exit code 1 when one was not. The library as it is plays the same worlds, and must not break anything.
 * `--seed N` is the first seed; `--write` puts the table into docs/internals/simulation-planted.md.
 */
import { randomInt } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { compiledProject, compiledText } from '../../../../scripts/compile.mjs';
import { pageOf, rowOf } from './planted-page.mjs';

const projectRoot = fileURLToPath(new URL('../../../../', import.meta.url));
const PAGE = join(projectRoot, 'docs/internals/simulation-planted.md');

/** What the simulation consists of. */
const PARTS = ['lib', 'test', 'package.json'];

/** A world leaves much behind that is garbage at its end. */
const YOUNG_MB = 64;

/** A world that a bug keeps from ending is given up after so long. */
const STUCK_AFTER_MS = 300_000;

async function settingsOf(args) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      seconds: { type: 'string', default: '60' },
      seed: { type: 'string' },
      write: { type: 'boolean', default: false },
    },
  });
  const seconds = Number(values.seconds);
  const seed = Number(values.seed ?? randomInt(2 ** 31));
  if (!(seconds > 0)) throw new Error('--seconds is a number above 0.');
  if (!Number.isInteger(seed) || seed < 0) throw new Error('--seed is a whole number.');
  const compiled = compiledProject();
  const { PLANTED, plant } = await import(
    pathToFileURL(join(compiled, 'test/techniques/simulation/planted/index.js'))
  );
  const unknown = positionals.filter((name) => !PLANTED.some((bug) => bug.name === name));
  if (unknown.length > 0) throw new Error(`No such bug: ${unknown.join(', ')}.`);
  if (values.write && positionals.length > 0) throw new Error('--write is for all bugs.');
  const bugs = PLANTED.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
  return { seconds, seed, compiled, bugs, plant, writes: values.write, own: [] };
}

/** Plays worlds in a thread of their own. */
function hunt(folder, { profile, seed, seconds, worlds = Infinity }) {
  const file = pathToFileURL(join(folder, 'test/techniques/simulation/planted/hunter.js'));
  const worker = new Worker(file, {
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    workerData: { profile, seed, seconds, worlds },
  });
  return new Promise((resolve) => {
    let stuck;
    const goesOn = () => {
      clearTimeout(stuck);
      stuck = setTimeout(() => {
        void worker.terminate();
        resolve({ worlds: 0, seconds, problem: 'a world did not end' });
      }, STUCK_AFTER_MS);
    };
    goesOn();
    worker.on('message', (message) => {
      if (message === 'goes on') goesOn();
      else resolve(message);
    });
    worker.once('error', (error) => resolve({ worlds: 0, seconds: 0, problem: String(error) }));
    worker.once('exit', () => clearTimeout(stuck));
  });
}

/** Calls back with the folder of a project that has the bug. */
async function withBug({ compiled, plant }, bug, use) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-planted-'));
  try {
    for (const part of PARTS) cpSync(join(compiled, part), join(folder, part), { recursive: true });
    symlinkSync(join(projectRoot, 'node_modules'), join(folder, 'node_modules'));
    const source = plant(readFileSync(join(projectRoot, bug.file), 'utf8'), bug);
    writeFileSync(join(folder, bug.file.replace(/ts$/, 'js')), compiledText(bug.file, source));
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The library as it is, in the worlds that the bugs begin with. */
async function playWithoutBugs({ compiled, bugs, seed, seconds, own }) {
  const profiles = [...new Set(bugs.map(({ profile }) => profile))];
  for (const profile of profiles) {
    const { worlds, found } = await hunt(compiled, {
      ...{ profile, seed },
      seconds: seconds / profiles.length,
    });
    if (found === undefined) {
      console.log(`planted: without any bug, ${worlds} worlds of ${profile} break nothing`);
      continue;
    }
    own.push({ profile, ...found });
    console.error(`planted: without any bug, ${profile} ${found.seed}: ${found.violation}`);
  }
}

async function search(settings, bug) {
  const { profile } = bug;
  const { compiled } = settings;
  return withBug(settings, bug, async (folder) => {
    let { seed, seconds } = settings;
    let [worlds, spent] = [0, 0];
    for (;;) {
      const result = await hunt(folder, { profile, seed, seconds });
      worlds += result.worlds;
      spent += result.seconds;
      const { found, problem } = result;
      if (found === undefined) return { bug, problem, worlds, seconds: spent };
      // What the library breaks as well says nothing of the bug.
      const own = await hunt(compiled, { profile, seed: found.seed, seconds, worlds: 1 });
      if (own.found === undefined) return { bug, found, worlds, seconds: spent };
      settings.own.push({ profile, ...own.found });
      console.error(`planted: without any bug, ${profile} ${found.seed}: ${own.found.violation}`);
      seed = found.seed + 1;
      seconds = Math.max(1, seconds - result.seconds);
    }
  });
}

async function main() {
  const settings = await settingsOf(process.argv.slice(2));
  const { seed, seconds, bugs, writes } = settings;
  console.log(
    `planted: ${bugs.length} bugs, from seed ${seed} on, ${seconds} s of a core for each`,
  );
  await playWithoutBugs(settings);
  const results = [];
  for (const bug of bugs) {
    const result = await search(settings, bug);
    results.push(result);
    console.log(rowOf(result));
  }
  const missed = results.filter(({ found }) => found === undefined);
  console.log(`planted: ${results.length - missed.length} of ${results.length} found`);
  if (missed.length + settings.own.length > 0) process.exitCode = 1;
  if (!writes) return;
  const machine = `${cpus()[0]?.model ?? 'unknown'}, ${availableParallelism()} cores, Node ${process.versions.node}`;
  writeFileSync(PAGE, await pageOf(results, { seconds, machine, seed }));
}

try {
  await main();
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
