/**
 * `npm run test:faults -- --minutes 5`: rounds of random faults against real Redis servers, each with a fresh seed, until the time is
 * over or a lock breaks a promise (exit code 1). `--seed N` plays the plan of one seed in every round; `--nodes` is 1, 3 or 5;
 * `--sabotage ignores-loss` or `one-node` has the clients do wrong, which is to be found. With `--engine memory`, `one-redis`,
 * `slow-redis`, `cluster`, `cluster-fail-over`, `three-masters` or `all`: callers of all modes, of several keys, and whether they are
 * served in time.
 */
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { compiledProject } from './compile.mjs';
import { ensureRedisServer } from './redis-server.mjs';

const ROUND_MS = 22_000; // of faults; with its beginning and its end a round takes half a minute

process.env.HOLDFAST_COMPILED = compiledProject(); // where clients find their programs
const load = (file) =>
  import(pathToFileURL(join(process.env.HOLDFAST_COMPILED, 'test', file)).href);
const { playRound } = await load('techniques/faults/orchestrator.js');
const { planOf } = await load('techniques/faults/plan.js');
const { reportOf, summaryOf } = await load('techniques/faults/report.js');
const engine = {
  ...(await load('techniques/crowds/plan.js')),
  ...(await load('techniques/crowds/report.js')),
  ...(await load('techniques/crowds/stage.js')),
};

function settingsOf(args) {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: 'string', default: '1' },
      nodes: { type: 'string', default: '3' },
      seed: { type: 'string' },
      sabotage: { type: 'string' },
      engine: { type: 'string' },
    },
  });
  const [minutes, nodes] = [Number(values.minutes), Number(values.nodes)];
  const seed = values.seed === undefined ? undefined : Number(values.seed);
  if (!(minutes > 0)) throw new Error('--minutes is a number above 0.');
  if (![1, 3, 5].includes(nodes)) throw new Error('--nodes is 1, 3 or 5.');
  if (seed !== undefined && !Number.isInteger(seed)) throw new Error('--seed is a whole number.');
  if (![undefined, 'ignores-loss', 'one-node'].includes(values.sabotage)) {
    throw new Error('--sabotage is ignores-loss or one-node.');
  }
  if (![undefined, 'all', ...engine.LONG_STORES].includes(values.engine)) {
    throw new Error(`--engine is all, ${engine.LONG_STORES.join(', ')}.`);
  }
  return { minutes, nodes, seed, sabotage: values.sabotage, store: values.engine };
}

/** Rounds of faults, in one line and at length. */
async function playFaults({ nodes, sabotage }, seed, lengthMs) {
  const round = await playRound(planOf({ seed, nodes, lengthMs }), sabotage);
  return [{ round, summary: summaryOf(round), report: () => reportOf(round) }];
}

/** A round of the engine test on each store that was asked for. */
async function playEngine({ store }, seed, lengthMs) {
  const rounds = [];
  for (const each of store === 'all' ? engine.LONG_STORES : [store]) {
    const round = await engine.playOnce(engine.planOf(seed, each, lengthMs));
    const report = () => engine.reportOf(round);
    rounds.push({ round, summary: engine.summaryOf(round), report });
  }
  return rounds;
}

/** Answers whether every round was as it should be. */
async function play(settings) {
  const { minutes, seed, store } = settings;
  const lengthMs = Math.min(ROUND_MS, minutes * 60_000);
  const until = performance.now() + minutes * 60_000;
  const playNext = store === undefined ? playFaults : playEngine;
  do {
    const rounds = await playNext(settings, seed ?? randomInt(2 ** 31), lengthMs);
    for (const { round, summary, report } of rounds) {
      console.log(`faults: ${summary}`);
      if (round.violations.length === 0) continue;
      console.error(report());
      return false;
    }
  } while (performance.now() < until);
  return true;
}

try {
  const settings = settingsOf(process.argv.slice(2));
  process.env.REDIS_SERVER_BIN = ensureRedisServer();
  if (!(await play(settings))) process.exitCode = 1;
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
