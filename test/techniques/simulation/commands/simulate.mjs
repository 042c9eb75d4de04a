/**
 * `npm run simulate -- --minutes 5`: the real engine in worlds of simulated processes, networks and Redis servers, each from a seed of its
 * own, until the time is over or a lock breaks a promise (exit code 1). `--profile` is one of those below (default: each of them
 * in turn); `--seed N` is the first seed, `--worlds N` how many seeds there are, each played in each profile (and then `--minutes` counts for
 * nothing), `--workers N` how many threads play them (default: one for each core), `--keep-going` looks for more after the first failure. `--size small` plays worlds of few callers and faults, many times as fast.
 */
import { randomInt } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { compiledProject } from '../../../../scripts/compile.mjs';

const PRINTS_EVERY_MS = 5_000;
/** A world leaves much behind that is garbage at its end. */
const YOUNG_MB = 64;

const PROFILES = [
  'line',
  'quorum',
  'modes',
  'once',
  'lead',
  'all',
  'replace',
  'operator',
  'cron',
  'login',
  'driver',
  'clients',
];
const SIZES = ['usual', 'small'];

function settingsOf(args) {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: 'string', default: '1' },
      worlds: { type: 'string' },
      seed: { type: 'string' },
      profile: { type: 'string' },
      size: { type: 'string', default: 'usual' },
      workers: { type: 'string', default: String(availableParallelism()) },
      'keep-going': { type: 'boolean', default: false },
    },
  });
  const numbers = { minutes: Number(values.minutes), workers: Number(values.workers) };
  const worlds = Number(values.worlds ?? 0);
  const seed = Number(values.seed ?? randomInt(2 ** 31));
  if (!(numbers.minutes > 0)) throw new Error('--minutes is a number above 0.');
  for (const [name, value] of Object.entries({ worlds, seed, workers: numbers.workers }))
    if (!Number.isInteger(value) || value < 0) throw new Error(`--${name} is a whole number.`);
  if (values.profile !== undefined && !PROFILES.includes(values.profile))
    throw new Error(`--profile is ${PROFILES.join(', ')}.`);
  if (!SIZES.includes(values.size)) throw new Error(`--size is ${SIZES.join(' or ')}.`);
  const profiles = values.profile === undefined ? PROFILES : [values.profile];
  const workers = worlds > 0 ? Math.min(worlds, numbers.workers) : numbers.workers;
  const { size, 'keep-going': keepsGoing } = values;
  return { ...numbers, workers, worlds, seed, size, profiles, keepsGoing };
}

/** What all workers have come to. */
class Total {
  #since = performance.now();
  #sums = { worlds: 0, simulatedMs: 0, faults: 0, grants: 0, steps: 0 };
  #paths = new Set();
  failures = [];

  add({ paths, report, failed, ...sums }) {
    for (const name of Object.keys(this.#sums)) this.#sums[name] += sums[name];
    for (const path of paths) this.#paths.add(path);
    if (failed === undefined) return;
    this.failures.push(failed);
    const picture = join(tmpdir(), `holdfast-${failed.profile}-${failed.seed}.svg`);
    writeFileSync(picture, report.svg);
    console.error(`${report.text}\nAs a picture: ${picture}`);
  }

  get line() {
    const { worlds, simulatedMs, faults, grants } = this.#sums;
    const seconds = (performance.now() - this.#since) / 1_000;
    const hours = (simulatedMs / 3_600_000).toFixed(1);
    return `simulate: ${worlds} worlds, ${(worlds / seconds).toFixed(0)} a second, ${hours} hours, ${grants} grants, ${faults} faults, ${this.#paths.size} paths, ${this.failures.length} failures`;
  }
}

async function simulate({ workers, worlds, minutes, seed, size, profiles, keepsGoing }) {
  const file = pathToFileURL(join(compiledProject(), 'test/techniques/simulation/worker.js'));
  const total = new Total();
  const running = [];
  console.log(`simulate: seed ${seed}, ${profiles.join(', ')}`);
  const printing = setInterval(() => console.log(total.line), PRINTS_EVERY_MS);
  const stop = () => {
    if (!keepsGoing) for (const worker of running) void worker.terminate();
  };
  const ends = Array.from({ length: workers }, (_, index) => {
    const share = worlds === 0 ? Infinity : Math.ceil((worlds - index) / workers);
    const data = { profiles, size, seed: seed + index, stride: workers, worlds: share };
    const worker = new Worker(file, {
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
      workerData: { ...data, minutes: worlds === 0 ? minutes : Infinity },
    });
    running.push(worker);
    return new Promise((resolve, reject) => {
      worker.on('message', (progress) => {
        total.add(progress);
        if (progress.failed !== undefined) stop();
      });
      worker.once('error', reject);
      worker.once('exit', resolve);
    });
  });
  // A worker that fails ends the run: the timer would keep the process from ending.
  await Promise.all(ends).finally(() => clearInterval(printing));
  console.log(total.line);
  return total.failures;
}

try {
  const failures = await simulate(settingsOf(process.argv.slice(2)));
  for (const { profile, seed } of failures)
    console.error(`simulate: failed: --profile ${profile} --seed ${seed}`);
  if (failures.length > 0) process.exitCode = 1;
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
