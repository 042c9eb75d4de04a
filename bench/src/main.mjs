/**
 * Holdfast beside other lock libraries. `npm run bench` in the project's root; behind `--`:
 *
 *   --quick             fewer and shorter repetitions, each peer with one choice of settings
 *   --only a,b          only these scenarios; `scale` is all that begin with `scale-`, `far` those through a network
 *   --check             exit code 1 when a "must" is missed
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import {
  farContended,
  fourProcesses,
  limited,
  limitedSection,
  once,
  oneProcess,
  places,
  section,
  shared,
} from './scenarios/contended.mjs';
import { decorator } from './scenarios/decorator.mjs';
import { holderKilled } from './scenarios/holder-killed.mjs';
import { idleWaiters } from './scenarios/idle-waiters.mjs';
import { manyLeases } from './scenarios/many-leases.mjs';
import { scaleKeys, scaleLine, scaleProcesses } from './scenarios/scale.mjs';
import { slowNode } from './scenarios/slow-node.mjs';
import { startUp } from './scenarios/start-up.mjs';
import { telemetry } from './scenarios/telemetry.mjs';
import { transfers } from './scenarios/transfers.mjs';
import { farUncontended, manyCallers, oneCaller, threeMasters } from './scenarios/uncontended.mjs';
import { waiterFrozen, waiterKilled } from './scenarios/waiter-gone.mjs';
import { machine } from './support/machine.mjs';
import { sentence } from './support/must.mjs';
import { overview } from './support/overview.mjs';
import { startRedis } from './support/redis.mjs';
import { plot } from './support/svg.mjs';
import { number, table } from './support/table.mjs';

const scenarios = [
  oneCaller,
  manyCallers,
  oneProcess,
  fourProcesses,
  section,
  idleWaiters,
  holderKilled,
  waiterKilled,
  waiterFrozen,
  manyLeases,
  decorator,
  threeMasters,
  slowNode,
  limited,
  limitedSection,
  ...places,
  shared,
  once,
  transfers,
  ...farUncontended,
  ...farContended,
  startUp,
  telemetry,
  scaleLine,
  scaleKeys,
  scaleProcesses,
];
const resultsFolder = new URL('../results/', import.meta.url);

const { values: flags } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [] },
    quick: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
  },
});
const chosen = choose(flags.only.flatMap((names) => names.split(',')));

// Children end with this process, and `exit` ends the servers.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130));

const redis = await startRedis();
const about = machine(redis.version, flags);
console.log(describe(about));
const results = [];
try {
  for (const { id, title, run } of chosen) {
    const start = performance.now();
    const result = await run({ redis, quick: flags.quick });
    const seconds = Math.round((performance.now() - start) / 1_000);
    results.push({ id, title, seconds, ...result });
    console.log(`\n### ${title}\n\n${table(result.columns, result.rows)}\n`);
    for (const must of result.musts) console.log(sentence(must));
    console.log(`(${id}, ${seconds} s)`);
  }
} finally {
  await redis.stop();
}

const tables = results.map(
  ({ title, columns, rows }) => `### ${title}\n\n${table(columns, rows)}\n`,
);
console.log(`\n${overview(results)}\n`);

// A part of the scenarios does not replace the figures of all of them.
const name = chosen.length === scenarios.length && !flags.quick ? 'latest' : 'part';
mkdirSync(resultsFolder, { recursive: true });
write(`${name}.json`, `${JSON.stringify({ machine: about, scenarios: results }, null, 2)}\n`);
write(`${name}.md`, [`${describe(about)}\n`, `${overview(results)}\n`, ...tables].join('\n'));
write(`${name}.svg`, plot(panelsOf(results), describe(about)));

const missed = results.flatMap(({ id, musts }) =>
  musts.filter(({ isMet }) => !isMet).map((must) => `${id}: ${sentence(must)}`),
);
console.log(missed.length === 0 ? '\nEvery must is met.' : `\n${missed.join('\n')}`);
if (flags.check && missed.length > 0) process.exitCode = 1;

function choose(names) {
  const isNamed = (name, id) => id === name || id.startsWith(`${name}-`);
  const unknown = names.filter((name) => !scenarios.some(({ id }) => isNamed(name, id)));
  if (unknown.length > 0) {
    const all = scenarios.map(({ id }) => id).join(', ');
    console.error(`There is no scenario ${unknown.join(', ')}. There are ${all}.`);
    process.exit(2);
  }
  if (names.length === 0) return scenarios;
  return scenarios.filter(({ id }) => names.some((name) => isNamed(name, id)));
}

function describe({ date, cpu, cores, node, redis: version, quick }) {
  const day = date.slice(0, 10);
  return `${cpu}, ${cores} cores, Node ${node}, Redis ${version}, ${day}${quick ? ', --quick' : ''}`;
}

function panelsOf(all) {
  return all
    .filter((scenario) => scenario.plot !== undefined)
    .map(({ title, rows, plot: { name: cell, unit, digits } }) => ({
      title: `${title} (${unit})`,
      bars: rows.map((row) => ({
        label: row.label,
        kind: row.kind,
        value: row[cell],
        text: number(row[cell], digits),
      })),
    }));
}

function write(file, content) {
  const path = fileURLToPath(new URL(file, resultsFolder));
  writeFileSync(path, content);
  console.log(`written: ${path}`);
}
