/**
 * `npm run test:mutation:lua`: changes the Lua scripts, one operator, value or statement at a time, and looks whether a test notices. Of each
 * file it makes 20 changes, always the same ones; `--per-file 50` makes more, 0 all. Paths such as `once.lua` choose files. Each change goes
 * through the steps below until it is noticed:
 *
 * - worlds of the simulation: a promise is broken, an error is nobody's, or a world does not end
 * - specs on real servers: a test is red twice, and green without the change
 *
 * The journal `.mutation/lua.json` has what became of each change. It is believed as long as the file is the same; `--again` tests anew what
 * has survived. `--steps 3` leaves out the last steps, and `--record` writes the table of docs/internals/testing.md.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { format, resolveConfig } from 'prettier';
import { ensureRedisServer } from '../redis-server.mjs';
import { changedText, sampleOf } from './lua-changes.mjs';
import { LuaCopy } from './lua-copy.mjs';

process.chdir(dirname(dirname(dirname(fileURLToPath(import.meta.url)))));
process.env.REDIS_SERVER_BIN = ensureRedisServer();

const HOME = 'lib/store/redis/lua';
const JOURNAL = '.mutation/lua.json';
const PAGE = 'docs/internals/testing.md';
const JUDGES = ['worlds', 'specs'];

const TABLE_HEAD =
  '| Lua file | changes | noticed by worlds | noticed by specs | survived | score |';

const specs = (folder, names) => names.split(' ').map((name) => `test/${folder}/${name}.spec.ts`);

/** What runs this script first of all. */
const FIRST_SPECS = {
  'acquire.lua': specs('store', 'redis-scripts fence-lives line-scripts holders line'),
  'extend.lua': specs('store', 'redis-scripts fence-lives line-scripts holders'),
  'give.lua': specs('store', 'plain'),
  'guarded.lua': specs('techniques/conformance', 'guarded'),
  'includes/clock.lua': specs('store', 'redis-scripts'),
  'includes/fence.lua': specs('store', 'redis-scripts older-data'),
  'includes/holders.lua': specs('store', 'holders kept-limits semaphore'),
  'includes/line.lua': specs('store', 'line-scripts line plain-channel holders'),
  'includes/places.lua': specs('store', 'line plain-channel quorum sharded-line'),
  'includes/proposal-bound.lua': specs('store', 'lua plain proposals'),
  'includes/quarantine.lua': specs('store', 'quarantine-script'),
  'once.lua': specs('store', 'once-scripts'),
  'quarantine.lua': specs('store', 'quarantine-script'),
  'raise-fence.lua': specs('store', 'redis-scripts fence-lives'),
  'release.lua': specs('store', 'redis-scripts fence-lives line-scripts holders'),
  'set-limit.lua': specs('store', 'line-scripts kept-limits'),
  'take.lua': specs('store', 'plain'),
  'transfer.lua': specs('store', 'fence-lives line-scripts transfer'),
};

/** What runs scripts besides. */
const MORE_SPECS = [
  ...specs('store', 'lua redis-scripts once-scripts plain transfer kept-limits older-data'),
  ...specs('store', 'holders line proposals semaphore quorum sharded-line declared-keys'),
  ...specs('store', 'standing-leases split-votes withdrawal admin-rights clean-up doubts'),
  ...specs('store', 'quarantine-script fence-lives line-scripts restart-guard sent-twice'),
];

const SLOW_SPECS = [
  ...specs('store', 'replicas redis-permissions'),
  ...specs('techniques/conformance', 'redis modes once detach replace places cluster guarded'),
  ...specs('techniques/conformance', 'quorum several-masters'),
  ...specs('admin', 'admin lock-admin forced-release frozen'),
  ...specs('claims/track-record', 'lost-lines dead-places messages-are-hints several-keys'),
];

/** From the quickest on. */
const STEPS = [
  { seeds: { from: 1, to: 3 } },
  { specsOf: ({ name }) => FIRST_SPECS[name] ?? MORE_SPECS },
  { seeds: { from: 4, to: 30 } },
  { specsOf: () => MORE_SPECS },
  { specsOf: () => SLOW_SPECS },
];

/** What the command was asked for. */
function settings() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      'per-file': { type: 'string', default: '20' },
      workers: { type: 'string', default: '2' },
      steps: { type: 'string', default: String(STEPS.length) },
      again: { type: 'boolean', default: false },
      record: { type: 'boolean', default: false },
    },
  });
  const perFile = Number(values['per-file']);
  if (!Number.isInteger(perFile) || perFile < 0)
    throw new Error('--per-file is a whole number; 0 makes all changes.');
  const files = readdirSync(HOME, { recursive: true })
    .filter((name) => name.endsWith('.lua'))
    .filter((name) => positionals.length === 0 || positionals.includes(name))
    .sort();
  if (values.record && positionals.length > 0) throw new Error('--record is for all files.');
  return { ...values, perFile: perFile === 0 ? Infinity : perFile, files };
}

/** The changes to be made, each with its file. */
const chosenChanges = ({ files, perFile }) =>
  files.flatMap((name) => {
    const file = join(HOME, name);
    const text = readFileSync(file, 'utf8');
    const hash = createHash('sha256').update(text).digest('hex').slice(0, 12);
    return sampleOf(name, text, perFile).map((change) => ({
      ...{ ...change, name, file, text },
      id: [hash, name, change.start, change.end, change.replacement].join(' '),
    }));
  });

/** What has become of each change: for the next run, and for readers. */
class Journal {
  #entries = existsSync(JOURNAL) ? JSON.parse(readFileSync(JOURNAL, 'utf8')) : {};

  /** Who has noticed it, and what; `undefined` if nobody has. */
  of({ id }) {
    return this.#entries[id]?.noticed;
  }

  /** How many steps have not noticed it. */
  passed({ id }) {
    return this.#entries[id]?.passed ?? 0;
  }

  forget({ id }) {
    delete this.#entries[id];
  }

  add(change, noticed) {
    const { id, file, line, original, replacement } = change;
    const passed = this.passed(change) + (noticed ? 0 : 1);
    this.#entries[id] = { file, line, original, replacement, passed, noticed };
    mkdirSync(dirname(JOURNAL), { recursive: true });
    writeFileSync(JOURNAL, JSON.stringify(this.#entries, undefined, 2));
  }
}

/** Who notices a change in a copy, and what; `undefined` if nobody does. Without any change, nobody must. */
async function judgeOf({ seeds, specsOf }, open, copy) {
  if (seeds !== undefined) {
    const violation = await copy.violation(seeds);
    if (violation !== undefined) throw new Error(`Without any change: ${violation}`);
    return async (copy) => {
      const what = await copy.violation(seeds);
      return what && { by: 'worlds', what };
    };
  }
  const red = await copy.redSpecs([...new Set(open.flatMap(specsOf))]);
  for (const spec of red) console.log(`lua: left out, for it is red without any change: ${spec}`);
  return async (copy, change) => {
    const what = await copy.redTest(specsOf(change).filter((spec) => !red.includes(spec)));
    return what && { by: 'specs', what };
  };
}

/** Has the copies judge changes, each copy one at a time. */
async function judgeAll(step, changes, copies, judge) {
  const queue = changes.values();
  let done = 0;
  const work = async (copy) => {
    for (const change of queue) {
      copy.write(change.file, changedText(change.text, change));
      const noticed = await judge(copy, change);
      copy.write(change.file, change.text);
      journal.add(change, noticed);
      done += 1;
      const result = noticed === undefined ? 'not noticed' : `noticed: ${noticed.what}`;
      console.log(`lua: step ${step}, ${done} of ${changes.length}: ${shown(change)}: ${result}`);
    }
  };
  await Promise.all(copies.map(work));
}

async function judgeInSteps(changes, { workers, steps }) {
  const copies = Array.from({ length: Number(workers) }, () => new LuaCopy());
  try {
    for (const [index, step] of STEPS.slice(0, Number(steps)).entries()) {
      const open = changes.filter(
        (change) => journal.of(change) === undefined && journal.passed(change) <= index,
      );
      if (open.length > 0)
        await judgeAll(index + 1, open, copies, await judgeOf(step, open, copies[0]));
    }
  } finally {
    for (const copy of copies) copy.remove();
  }
}

/** As a line of a list. */
function shown({ file, line, original, replacement }) {
  const short = (text) => text.replace(/\s+/g, ' ').trim() || 'nothing';
  return `${file}:${line} ${short(original)} → ${short(replacement)}`;
}

/** The table of the documentation. */
function tableOf(changes, names) {
  const rowOf = (title, some) => {
    const [byWorlds, bySpecs] = JUDGES.map(
      (judge) => some.filter((change) => journal.of(change)?.by === judge).length,
    );
    const noticed = byWorlds + bySpecs;
    const score = `${((100 * noticed) / some.length).toFixed(1)} %`;
    const cells = [some.length, byWorlds, bySpecs, some.length - noticed, score];
    return `| ${[title, ...cells].join(' | ')} |`;
  };
  return [
    TABLE_HEAD,
    '| --- | --- | --- | --- | --- | --- |',
    ...names.map((name) =>
      rowOf(
        `\`${name}\``,
        changes.filter((change) => change.name === name),
      ),
    ),
    rowOf('all', changes),
  ].join('\n');
}

async function record(table) {
  const text = readFileSync(PAGE, 'utf8');
  const known = /^\| Lua file .*\n(?:\|.*\n)+/m;
  if (!known.test(text)) throw new Error(`${PAGE} has no table of Lua files.`);
  const options = await resolveConfig(PAGE);
  const filled = text.replace(known, `${table}\n`);
  writeFileSync(PAGE, await format(filled, { ...options, filepath: PAGE }));
}

const chosen = settings();
const changes = chosenChanges(chosen);
const journal = new Journal();
const survivors = () => changes.filter((change) => journal.of(change) === undefined);
if (chosen.again) for (const change of survivors()) journal.forget(change);
await judgeInSteps(changes, chosen);
const table = tableOf(changes, chosen.files);
console.log(table);
for (const change of survivors()) console.log(`lua: survived: ${shown(change)}`);
if (chosen.record) await record(table);
