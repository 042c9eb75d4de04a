/**
 * Holdfast beside a lock written by hand, other lock libraries and an older build of itself: `npm run bench` in the project's root.
 * Behind `--`:
 *
 *   --check              exit code 1 when a must is missed; it is always 1 when a row cannot be measured
 *   --only <text>        only the rows whose name contains the text
 *   --baseline <folder>  a clone with an older build; without it, the rows that compare with one are skipped
 *   --rounds <n>         the most rounds; with fewer than six, no result is certain
 *   --seconds <n>        how long each variant is measured in a round
 */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { compare, variantsOf } from './compare.mjs';
import { contendedScenarios } from './scenarios/contended.mjs';
import { inMemory, weight } from './scenarios/in-process.mjs';
import { manyLeases } from './scenarios/many-leases.mjs';
import { masterScenarios } from './scenarios/masters.mjs';
import { packageScenarios } from './scenarios/packages.mjs';
import { transferScenarios } from './scenarios/transfers.mjs';
import { uncontendedScenarios } from './scenarios/uncontended.mjs';
import { machine } from './support/machine.mjs';
import { startRedis } from './support/redis.mjs';
import { table } from './support/table.mjs';

const MOST_ROUNDS = 25;

const scenarios = [
  ...uncontendedScenarios,
  ...packageScenarios,
  ...masterScenarios,
  ...contendedScenarios,
  ...transferScenarios,
  manyLeases,
  inMemory,
  weight,
];

const LABELS = {
  bare: 'the bare commands',
  baseline: 'the baseline',
  healthy: 'three healthy nodes',
  sending: 'a process that only sends the renewals',
};

const { values: flags } = parseArgs({
  options: {
    check: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    baseline: { type: 'string' },
    rounds: { type: 'string', default: String(MOST_ROUNDS) },
    seconds: { type: 'string' },
  },
});
const baseline = flags.baseline && builtFolder(flags.baseline);
const [mostRounds, seconds] = [positive('rounds'), flags.seconds && positive('seconds')];

// Children end with this process, and `exit` ends the servers.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130));

const chosen = scenarios
  .map((scenario) => ({ ...scenario, rows: scenario.rows.filter(isNamed) }))
  .filter(({ rows }) => rows.length > 0);
if (chosen.length === 0) fail(`No row has a name that contains "${flags.only}".`);

let redisVersion = 'not started';
const results = [];
for (const { rows, run } of chosen) results.push(...(await resultsOf(rows, run)));
console.log(`\n${machine(redisVersion)}\n\n${tableOf(results)}\n`);
const countOf = (verdict) => results.filter((result) => result.verdict === verdict).length;
for (const verdict of ['missed', 'failed', 'not certain', 'skipped'])
  console.log(`${verdict}: ${countOf(verdict)}`);
if (countOf('failed') > 0 || (flags.check && countOf('missed') > 0)) process.exitCode = 1;

async function resultsOf(rows, run) {
  const needsBaseline = (row) => variantsOf([row]).has('baseline');
  const measured = rows.filter((row) => baseline !== undefined || !needsBaseline(row));
  const skipped = rows
    .filter((row) => !measured.includes(row))
    .map((row) => ({ ...labelled(row), verdict: 'skipped' }));
  const found = measured.length === 0 ? [] : await measure(measured, run).catch(failed(measured));
  for (const result of [...found, ...skipped]) console.log(sentence(result));
  return [...found, ...skipped];
}

/** The other scenarios are measured nevertheless. */
function failed(rows) {
  return (error) => {
    console.error(error);
    return rows.map((row) => ({ ...labelled(row), verdict: 'failed' }));
  };
}

/** On a server of its own: what one scenario leaves behind meets no other one. */
async function measure(rows, run) {
  console.log(`… ${rows[0].name}`);
  const redis = await startRedis();
  redisVersion = redis.version;
  try {
    return await run({
      redis,
      baseline,
      wanted: variantsOf(rows),
      seconds: (usual) => seconds ?? usual,
      async compare(variants, labels) {
        const judged = await compare(rows, variants, mostRounds);
        return judged.map((row) => labelled(row, labels));
      },
    });
  } finally {
    await redis.stop();
  }
}

function labelled(row, labels = {}) {
  const { against } = row;
  const names = { ...LABELS, ...labels };
  const label = against
    ?.split('.')
    .map((part) => names[part])
    .find(Boolean);
  return { ...row, label };
}

function sentence({ name, label, must, verdict = 'no must', ...judged }) {
  const than = label ? ` × ${label}` : '';
  const limit = must ? ` (must ${must.text})` : '';
  if (verdict === 'skipped')
    return `skipped: ${name}${than}${limit}. Name the folder of an older build: --baseline <folder>`;
  if (verdict === 'failed') return `failed: ${name}${than}${limit}`;
  return `${verdict}: ${name}: ${figureOf(judged)}${than}${limit}, ${judged.rounds} rounds`;
}

function tableOf(all) {
  const rows = all.map(({ name, label = '–', must, verdict = '–', ...judged }) => ({
    name,
    label,
    verdict,
    must: must?.text,
    measured: judged.rounds && figureOf(judged),
    rounds: judged.rounds,
  }));
  const columns = [
    { name: 'name', head: 'row' },
    { name: 'label', head: 'relative to' },
    { name: 'must', head: 'must' },
    { name: 'measured', head: 'median (95 % interval)' },
    { name: 'rounds', head: 'rounds', digits: 0 },
    { name: 'verdict', head: 'verdict' },
  ];
  return table(columns, rows);
}

function figureOf({ median, low, high }) {
  const text = (value) => value.toLocaleString('en', { maximumSignificantDigits: 3 });
  return `${text(median)} (${text(low)} to ${text(high)})`;
}

function isNamed({ name }) {
  return name.includes(flags.only);
}

function positive(name) {
  const value = Number(flags[name]);
  if (!(value > 0)) fail(`--${name} is a number above 0, and not "${flags[name]}".`);
  return value;
}

function builtFolder(name) {
  const folder = resolve(name);
  if (!existsSync(join(folder, 'dist/index.js')))
    fail(`${folder} has no dist/index.js. Build the older version there: npm run build`);
  return folder;
}

function fail(message) {
  console.error(message);
  process.exit(2);
}
