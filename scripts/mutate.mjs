/**
 * `npm run test:mutation -- key time`: changes the code of these folders of lib/ and packages, one operator or value at a time, and looks whether a test
 * notices. `all` stands for every folder; without any, it takes those that differ from `--since` (default: origin/main). Of each file it makes 20
 * changes, always the same ones (`--per-file 100`; 0 for all). Prints the score of each folder, and what survived. What is known from
 * the run before is not done again (`.mutation/`). Fails where a folder has fallen below its score in docs/internals/testing.md;
 * `--record` writes that table anew.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { format, resolveConfig } from 'prettier';
import { changesOf, hashOf, sampleOf } from './mutation/changes.mjs';
import { Project, sourceNames } from './mutation/project.mjs';
import { Specs } from './mutation/specs.mjs';
import { Trial } from './mutation/trial.mjs';
import { Worlds } from './mutation/worlds.mjs';
import { ensureRedisServer } from './redis-server.mjs';
import { specsOf } from './test-parts.mjs';

process.chdir(dirname(dirname(fileURLToPath(import.meta.url))));
process.env.REDIS_SERVER_BIN = ensureRedisServer();

/** What browsers run: its tests are those of a browser. */
const OF_BROWSERS = 'packages/board/lib/page/';

/** Specs that take longer are left out: they would be run for hundreds of changes. */
const LONGEST_S = 50;

/** What is tested through another folder, and by which of its specs. */
const ALSO_TESTED_IN = {
  cli: ['migrate/command'],
  engine: [
    'admin/',
    'lease/',
    'once/run-once',
    'sections/',
    'store/kept-limits',
    'store/semaphore',
    'techniques/conformance/',
  ],
  errors: ['lease/detach', 'nest/errors', 'nest/former-names'],
  leader: ['techniques/conformance/'],
  lease: ['techniques/conformance/'],
  nest: ['claims/transports/'],
  observe: ['lease/lease', 'queue/waiting'],
  opentelemetry: ['observe/'],
  options: ['nest/module/options'],
  once: ['techniques/conformance/'],
  prometheus: ['observe/exported-metrics', 'observe/grafana'],
  queue: ['techniques/conformance/'],
  sections: ['lease/sections'],
  store: [
    'admin/',
    'claims/track-record/',
    'driver/',
    'lease/',
    'once/',
    'queue/',
    'techniques/conformance/',
  ],
  swagger: ['nest/swagger'],
  testing: ['driver/'],
  tools: ['cli/', 'store/unix-socket'],
  worker: ['once/'],
};

/** Code that also runs in the processes that these specs start. There nothing is noted, so all their tests are shown its changes. */
const IN_PROCESSES = {
  'lib/nest/transports/faults.ts': 'claims/transports/grpc/',
  'lib/nest/transports/graphql.ts': 'claims/transports/graphql/',
  'lib/nest/transports/grpc.ts': 'claims/transports/grpc/',
  'lib/nest/transports/transport-of.ts': 'claims/transports/grpc/',
  'lib/nest/transports/ws.ts': 'claims/transports/websockets/',
};

/** Specs that start processes, in which nothing is noted, or many servers, for what others also test; and those of the sources themselves. */
const NOTICE_NOTHING =
  /^test\/(cli\/(program|terminal|three-in-the-morning)\.|leader\/processes\.|board\/browser\/|claims\/(docs|public-api|types|bench|site)\/|techniques\/(simulation|mutation|soak|conformance\/(fail-over|\w+-(dead|far|few|silent)))\b)/;

/** What the simulated worlds are about. */
const OF_WORLDS = new Set(['engine', 'leader', 'lease', 'once', 'queue', 'sections', 'store']);

const TABLE = 'docs/internals/testing.md';

const homeOf = (folder) =>
  existsSync(`lib/${folder}`) ? `lib/${folder}` : `packages/${folder}/lib`;
const folderOf = (file) => /^(?:lib|packages)\/(\w+)\//.exec(file)?.[1];

/** The rows of the documentation. */
const ALL_ROWS = /^\| folder .*\n(?:\|.*\n)+/m;

/** The row of a folder there. */
const rowOf = (folder) =>
  new RegExp(`^\\| \`${homeOf(folder)}\` *\\|.*? ([\\d.]+) % *\\|.*\\|$`, 'm');

function settings() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      since: { type: 'string', default: 'origin/main' },
      record: { type: 'boolean', default: false },
      'per-file': { type: 'string', default: '20' },
      workers: { type: 'string', default: String(availableParallelism()) },
    },
  });
  const perFile = Number(values['per-file']);
  if (!Number.isInteger(perFile) || perFile < 0)
    throw new Error('--per-file is a whole number: so many changes of each file, or 0 for all.');
  const folders = chosen(positionals, values.since);
  for (const folder of folders)
    if (!existsSync(homeOf(folder))) throw new Error(`There is no folder ${homeOf(folder)}.`);
  return { folders, isRecorded: values.record, workers: Number(values.workers), perFile };
}

function chosen(names, since) {
  if (names.includes('all')) {
    const folders = [...readdirSync('lib'), ...readdirSync('packages')];
    return folders.filter((name) => !name.includes('.') && existsSync(homeOf(name)));
  }
  if (names.length > 0) return names;
  const changed = execFileSync('git', ['diff', '--name-only', since, '--', 'lib', 'packages'], {
    encoding: 'utf8',
  });
  const folders = new Set(changed.split('\n').map(folderOf));
  return [...folders].filter((folder) => folder && existsSync(homeOf(folder)));
}

const isChanged = (name) =>
  /^(lib|packages\/\w+\/lib)\/.*\.ts$/.test(name) &&
  !name.endsWith('.d.ts') &&
  !name.startsWith(OF_BROWSERS);

/** The specs of the folders themselves, and all that need no server. */
function specsFor(folders) {
  const measured = JSON.parse(readFileSync('test/times.json', 'utf8'));
  const usable = (spec) => !NOTICE_NOTHING.test(spec) && (measured[spec] ?? 0) <= LONGEST_S;
  const own = specsOf('all').filter(
    (spec) => usable(spec) && folders.some((folder) => isIn(homesOf(folder), spec)),
  );
  return { own, usable: [...new Set([...own, ...specsOf('unit').filter(usable)])] };
}

const isOwn = (spec, { file }) => isIn(homesOf(folderOf(file)), spec);
const isUnseen = (spec, { file }) =>
  file in IN_PROCESSES && spec.startsWith(`test/${IN_PROCESSES[file]}`);

const homesOf = (folder) =>
  [`${folder}/`, ...(ALSO_TESTED_IN[folder] ?? [])].map((home) => `test/${home}`);
const isIn = (homes, spec) => homes.some((home) => spec.startsWith(home));

/** In points: where code has changed, other changes are made. */
const TOLERANCE = 5;

const recordedScore = (folder) => Number(rowOf(folder).exec(readFileSync(TABLE, 'utf8'))?.[1] ?? 0);

async function record({ folder, row }) {
  const text = readFileSync(TABLE, 'utf8');
  const line = `| ${row.join(' | ')} |`;
  const rows = rowOf(folder).test(text)
    ? text.replace(rowOf(folder), line)
    : text.replace(ALL_ROWS, `$&${line}\n`);
  const options = await resolveConfig(TABLE);
  writeFileSync(TABLE, await format(rows, { ...options, filepath: TABLE }));
}

const oneLine = (text) => text.replace(/\s+/g, ' ').slice(0, 120);

/** The row of a folder, and what survived there. */
function resultOf(folder, changes, trial, perFile) {
  const own = changes.filter(({ file }) => file.startsWith(`${homeOf(folder)}/`));
  const survived = own.filter((change) => trial.verdictOf(change) === undefined);
  const hung = own.filter((change) => trial.verdictOf(change)?.red.hangs);
  const noticed = own.length - survived.length;
  const score = own.length === 0 ? 100 : (100 * noticed) / own.length;
  for (const change of survived) {
    const { file, line, original, replacement } = change;
    const note = trial.isCovered(change) ? '' : ' (no test comes by)';
    console.log(`${file}:${line} ${oneLine(original)} → ${oneLine(replacement)}${note}`);
  }
  const many = perFile === 0 ? 'all' : `${perFile} a file`;
  const row = [`\`${homeOf(folder)}\``, own.length, noticed, hung.length, survived.length];
  return { folder, score, row: [...row, `${score.toFixed(1)} %`, many] };
}

const { folders, isRecorded, workers, perFile } = settings();
const names = sourceNames();
const files = names
  .filter(isChanged)
  .map((name) => ({ name, content: readFileSync(name, 'utf8') }));
const { files: changed, changes } = await changesOf(files);
const sample = sampleOf(changes, perFile);
const wanted = sample.filter(({ file }) => folders.includes(folderOf(file)));
console.log(`mutation: ${wanted.length} changes in ${folders.join(', ')}`);

const project = new Project('.', names, changed);
const specs = new Specs(project, workers);
const leave = (code) => {
  specs.stop();
  project.remove();
  process.exit(code);
};
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => leave(130));
try {
  process.env.HOLDFAST_COMPILED = project.compiled();
  const others = names.filter(
    (name) =>
      /^(lib|packages|test|scripts\/mutation)\//.test(name) &&
      !/\.spec\.ts$/.test(name) &&
      name !== 'test/times.json',
  );
  const trial = new Trial({
    specs,
    worlds: new Worlds(process.env.HOLDFAST_COMPILED),
    wanted: sample,
    fingerprint: hashOf(String(perFile), ...others.map((name) => readFileSync(name, 'utf8'))),
    folder: '.mutation',
    workers,
  });
  const { usable, own } = specsFor(folders);
  const withWorlds = ({ file }) => OF_WORLDS.has(folderOf(file));
  await trial.show(wanted, own, { isOwn, isUnseen, withWorlds });
  await trial.show(wanted, usable, { isOwn, isUnseen, withWorlds });
  const results = folders.map((folder) => resultOf(folder, wanted, trial, perFile));
  for (const { row } of results) console.log(`| ${row.join(' | ')} |`);
  if (isRecorded) for (const result of results) await record(result);
  for (const { folder, score } of results) {
    const least = recordedScore(folder);
    if (score >= least - TOLERANCE) continue;
    console.error(`mutation: ${homeOf(folder)} is below its ${least} % in ${TABLE}`);
    process.exitCode = 1;
  }
} finally {
  specs.stop();
  project.remove();
}
