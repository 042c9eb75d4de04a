/**
 * `npm run test:faults -- --minutes 5`: rounds of random faults against real Redis servers, each with a fresh seed, until the time is
 * over or a lock breaks a promise (exit code 1). `--seed N` plays the plan of one seed in every round; `--nodes` is 1, 3 or 5;
 * `--sabotage ignores-loss` or `one-node` has the clients do wrong, which is to be found. With `--engine memory`, `one-redis`,
 * `slow-redis`, `cluster`, `three-masters`, `cluster-fail-over`, `sentinel` or `all`: callers of all modes, of several keys, and whether
 * they are served in time. `--all` plays a round of each of these in turn, with the seeds N, N + 1 and so on, and prints totals at the
 * end. `--keep-going` goes on after a violation.
 */
import { randomInt } from 'node:crypto';
import { cpus, release, type } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { compiledProject } from './compile.mjs';
import { ensureRedisServer, versionOf } from './redis-server.mjs';

const ROUND_MS = 24_000; // of faults; with its beginning and its end a round takes half a minute

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

const NODES = [1, 3, 5];

function settingsOf(args) {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: 'string', default: '1' },
      nodes: { type: 'string', default: '3' },
      seed: { type: 'string' },
      sabotage: { type: 'string' },
      engine: { type: 'string' },
      all: { type: 'boolean', default: false },
      'keep-going': { type: 'boolean', default: false },
    },
  });
  const [minutes, nodes] = [Number(values.minutes), Number(values.nodes)];
  const seed = values.seed === undefined ? undefined : Number(values.seed);
  if (!(minutes > 0)) throw new Error('--minutes is a number above 0.');
  if (!NODES.includes(nodes)) throw new Error('--nodes is 1, 3 or 5.');
  if (seed !== undefined && !Number.isInteger(seed)) throw new Error('--seed is a whole number.');
  if (![undefined, 'ignores-loss', 'one-node'].includes(values.sabotage)) {
    throw new Error('--sabotage is ignores-loss or one-node.');
  }
  if (![undefined, 'all', ...engine.LONG_STORES].includes(values.engine)) {
    throw new Error(`--engine is all, ${engine.LONG_STORES.join(', ')}.`);
  }
  const { sabotage, engine: store, all: isAll, 'keep-going': keepsGoing } = values;
  return { minutes, nodes, seed, sabotage, store, isAll, keepsGoing };
}

const onNodes = (nodes, sabotage) => ({
  name: `--nodes ${nodes}`,
  async play(seed, lengthMs) {
    const round = await playRound(planOf({ seed, nodes, lengthMs }), sabotage);
    const faults = round.plan.steps.length;
    return { round, faults, summary: summaryOf(round), report: () => reportOf(round) };
  },
});

const onStore = (store) => ({
  name: `--engine ${store}`,
  async play(seed, lengthMs) {
    const round = await engine.playOnce(engine.planOf(seed, store, lengthMs));
    const [summary, faults] = [engine.summaryOf(round), round.plan.faults.length];
    return { round, faults, summary, report: () => engine.reportOf(round) };
  },
});

/** What is played in turn. */
function kindsOf({ nodes, sabotage, store, isAll }) {
  if (isAll) return [...NODES.map((count) => onNodes(count)), ...engine.LONG_STORES.map(onStore)];
  if (store === undefined) return [onNodes(nodes, sabotage)];
  return (store === 'all' ? engine.LONG_STORES : [store]).map(onStore);
}

class Totals {
  #kinds = new Map();

  add({ name }, { round: { events, violations }, faults }) {
    const count = (type) => events.filter((event) => event.type === type).length;
    const sum = this.#kinds.get(name) ?? [0, 0, 0, 0, 0];
    const more = [1, count('granted'), faults, count('lost'), violations.length];
    this.#kinds.set(
      name,
      sum.map((figure, index) => figure + more[index]),
    );
  }

  /** A Markdown table. */
  toString() {
    return [
      ['kind', 'rounds', 'grants', 'faults', 'losses', 'violations'],
      ['---', ...Array(5).fill('---:')],
      ...[...this.#kinds].map(([name, figures]) => [name, ...figures]),
    ]
      .map((cells) => `| ${cells.join(' | ')} |`)
      .join('\n');
  }
}

/** Resolves with whether every round was as it should be. */
async function play(settings, totals) {
  const { minutes, seed, isAll, keepsGoing } = settings;
  const lengthMs = Math.min(ROUND_MS, minutes * 60_000);
  const until = performance.now() + minutes * 60_000;
  const isOver = () => performance.now() >= until;
  const kinds = kindsOf(settings);
  let isSound = true;
  let next = seed ?? randomInt(2 ** 31);
  do {
    for (const kind of kinds) {
      if (isAll && isOver()) break;
      const played = await kind.play(next, lengthMs);
      totals.add(kind, played);
      console.log(`faults: ${played.summary}`);
      if (played.round.violations.length === 0) continue;
      console.error(played.report());
      isSound = false;
      if (!keepsGoing) return false;
    }
    if (seed === undefined) next = randomInt(2 ** 31);
    else if (isAll) next += 1;
  } while (!isOver());
  return isSound;
}

const machine = () =>
  `${cpus().length} cores, ${type()} ${release()}, Node ${process.versions.node}`;

try {
  const settings = settingsOf(process.argv.slice(2));
  process.env.REDIS_SERVER_BIN = ensureRedisServer();
  const totals = new Totals();
  if (!(await play(settings, totals))) process.exitCode = 1;
  if (settings.isAll) {
    const server = versionOf(process.env.REDIS_SERVER_BIN);
    console.log(`${totals}\n\n${server}; ${machine()}`);
  }
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
