/**
 * `npm run simulate:explore`: plays small worlds in every order in which their first messages can arrive, deeper and deeper, and prints to
 * which depth each was played completely. `--seconds N` for each scope (default 20), or `--depth N` for that depth only, however long it
 * takes; `--scope` one of them, by a part of its name. Exit code 1 when a lock breaks a promise.
 */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { compiledProject } from '../../../../scripts/compile.mjs';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    depth: { type: 'string' },
    scope: { type: 'string', default: '' },
    workers: { type: 'string', default: String(availableParallelism()) },
  },
});

for (const name of ['seconds', 'workers', 'depth'])
  if (values[name] !== undefined && !(Number(values[name]) > 0))
    throw new Error(`--${name} is a number above 0.`);

const folder = join(compiledProject(), 'test/techniques/simulation/explore');
const imported = (file) => import(pathToFileURL(join(folder, file)));
const { SCOPES } = await imported('scopes.js');
const waiting = SCOPES.filter(({ name }) => name.includes(values.scope));
if (waiting.length === 0) throw new Error(`--scope: no name contains ${values.scope}.`);

function explore({ name: scope }) {
  const settings = { scope, seconds: Number(values.seconds) };
  if (values.depth !== undefined) settings.depth = Number(values.depth);
  const since = performance.now();
  let complete;
  const worker = new Worker(pathToFileURL(join(folder, 'worker.js')), { workerData: settings });
  worker.on('message', (explored) => {
    if (explored.report !== undefined) {
      console.error(explored.report);
      process.exitCode = 1;
    }
    if (explored.isComplete) complete = explored;
  });
  return new Promise((resolve, reject) => {
    worker.once('error', reject);
    worker.once('exit', () => {
      const seconds = ((performance.now() - since) / 1_000).toFixed(0);
      console.log(
        complete === undefined
          ? `explore: ${scope}: not complete after ${seconds} s`
          : `explore: ${scope}: ${complete.isDeeper ? `depth ${complete.depth}` : 'to the end'}, ${complete.worlds} orders, ${complete.seenBefore} seen before, ${seconds} s`,
      );
      resolve();
    });
  });
}

async function work() {
  for (let scope = waiting.shift(); scope !== undefined; scope = waiting.shift())
    await explore(scope);
}

await Promise.all(Array.from({ length: Number(values.workers) }, work));
