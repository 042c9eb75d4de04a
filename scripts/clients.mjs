/**
 * `npm run test:clients -- --client iovalkey --suite faults --core --json FILE`: runs the tests that speak to Redis with clients of each
 * package, as `test/support/clients/` makes them, and prints how many ran. `--client` is one of them, `--suite` one of the suites, and
 * `--core` the least that tells whether a client works. `--json` keeps the figures, and `--table FILE…` makes the table of
 * docs/internals/runs.md of them. What follows `--` goes to
 * jest: `npm run test:clients -- --client iovalkey -- --testTimeout=60000`.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { CLIENTS, CORE, SUITES, suiteOf } from '../test/support/clients/suites.mjs';
import { specsOf } from './test-parts.mjs';

const projectRoot = dirname(dirname(fileURLToPath(import.meta.url)));

function settingsOf(args) {
  const { values, positionals: forJest } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      client: { type: 'string' },
      suite: { type: 'string' },
      core: { type: 'boolean', default: false },
      json: { type: 'string' },
      table: { type: 'boolean', default: false },
    },
  });
  const { client, suite, core, json } = values;
  if (values.table) return { tableOf: forJest };
  const suites = [...new Set(SUITES.map((each) => each.suite))];
  if (client !== undefined && !(client in CLIENTS))
    throw new Error(`clients: --client is one of ${Object.keys(CLIENTS).join(', ')}`);
  if (suite !== undefined && !suites.includes(suite))
    throw new Error(`clients: --suite is one of ${suites.join(', ')}`);
  const specs = specsOf('all').filter(
    (spec) =>
      suiteOf(spec) !== undefined &&
      (suite === undefined || suiteOf(spec).suite === suite) &&
      (!core || CORE.test(spec)),
  );
  const clients = client === undefined ? Object.keys(CLIENTS) : [client];
  return { clients, specs, json, forJest };
}

/** Runs the specs with a client. Resolves with the exit code of jest, and what it wrote of each spec. */
async function runWith(client, specs, forJest) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-clients-'));
  const record = join(folder, 'record.jsonl');
  const env = { ...process.env, HOLDFAST_CLIENT: client, HOLDFAST_CLIENT_RECORD: record };
  const args = ['scripts/test.mjs', '--part', 'all', ...forJest, ...specs];
  try {
    const child = spawn(process.execPath, args, { cwd: projectRoot, env, stdio: 'inherit' });
    for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => child.kill(signal));
    const code = await new Promise((resolve) => child.once('close', resolve));
    const text = existsSync(record) ? readFileSync(record, 'utf8') : '';
    const lines = text.split('\n').filter((line) => line !== '');
    return { code, records: lines.map((line) => JSON.parse(line)) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** How many tests of each suite ran with the client. */
function cellsOf(client, records) {
  return SUITES.flatMap(({ topology, suite, specs }) => {
    const tests = records.filter(({ spec }) => specs.test(spec)).flatMap((each) => each.tests);
    const countOf = (status) => tests.filter((test) => test.status === status).length;
    if (tests.length === 0) return [];
    const leftOut = {};
    for (const { reason } of tests)
      if (reason !== undefined) leftOut[reason] = (leftOut[reason] ?? 0) + 1;
    return [
      { client, topology, suite, passed: countOf('passed'), failed: countOf('failed'), leftOut },
    ];
  });
}

function versionOf(client) {
  const manifest = join(projectRoot, 'node_modules', CLIENTS[client], 'package.json');
  const { name, version } = JSON.parse(readFileSync(manifest, 'utf8'));
  return `${name} ${version}`;
}

function sentence({ client, topology, suite, passed, failed, leftOut }) {
  const reasons = Object.entries(leftOut).map(
    ([reason, count]) => `, ${count} left out: ${reason}`,
  );
  return `clients: ${client}, ${topology}, ${suite}: ${passed} passed, ${failed} failed${reasons.join('')}`;
}

/** As a table of Markdown: a row for each suite, a column for each client. */
function table(cells) {
  const versions = [...new Set(cells.map(({ version }) => version))];
  const of = (version) => cells.filter((cell) => cell.version === version);
  const countOf = (version, { topology, suite }) => {
    const cell = of(version).find((each) => each.topology === topology && each.suite === suite);
    if (cell === undefined || cell.passed + cell.failed === 0) return 'none';
    return cell.failed === 0 ? cell.passed : `${cell.passed}, ${cell.failed} failed`;
  };
  const leftOutOf = (version) =>
    of(version)
      .flatMap(({ leftOut }) => Object.values(leftOut))
      .reduce((sum, count) => sum + count, 0);
  const rows = [
    ['where, what', ...versions],
    ['---', ...versions.map(() => '---:')],
    ...SUITES.map((each) => [
      `${each.topology}: ${each.suite}`,
      ...versions.map((version) => countOf(version, each)),
    ]),
    ['left out', ...versions.map(leftOutOf)],
  ];
  return rows.map((row) => `| ${row.join(' | ')} |`).join('\n');
}

try {
  const { clients = [], specs, json, forJest, tableOf = [] } = settingsOf(process.argv.slice(2));
  const cells = [];
  for (const client of clients) {
    const { code, records } = await runWith(client, specs, forJest);
    const found = cellsOf(client, records);
    cells.push(...found.map((cell) => ({ ...cell, version: versionOf(client) })));
    if (code !== 0 || found.every(({ passed }) => passed === 0)) process.exitCode = 1;
  }
  for (const cell of cells) console.log(sentence(cell));
  const kept = tableOf.flatMap((file) => JSON.parse(readFileSync(file, 'utf8')));
  if (kept.length > 0) console.log(table(kept));
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(cells, undefined, 2)}\n`);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
