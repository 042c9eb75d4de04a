/**
 * What survives in the store when only specs without a server are run. Nearly all others start servers and wait for leases to end, so StrykerJS
 * would take days. Each change meets, until it is noticed:
 *
 * 1. the first of the simulated worlds that are played at each change of the project: a promise is broken, or an error is nobody's
 * 2. the specs that come by it, the quick ones and those of the folder first, for as long as `SPEC_SECONDS` say
 * 3. more of the simulated worlds
 *
 * What was noticed in the run before is not tested again as long as its file is the same (`.stryker/further-*.json`).
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { specsOf } from '../test-parts.mjs';
import { changesOf } from './changes.mjs';
import { Specs } from './specs.mjs';
import { Worlds } from './worlds.mjs';

/** Of each there are five worlds, one of each profile. */
const SEEDS = { first: 3, more: 30 };

/** Of what a change is tested with, as long as the specs took when they were last measured. */
const SPEC_SECONDS = { quick: 30, slow: 90 };

/** A spec that takes no longer is quick. */
const QUICK_S = 5;

/** Where the store is tested with servers, beside its own folder. */
const HOMES = [
  ...[
    'techniques/conformance/',
    'claims/track-record/',
    'once/',
    'techniques/hostile/',
    'lease/',
    'queue/',
    'admin/',
  ],
  ...[
    'nest/module/health',
    'nest/module/redis',
    'nest/module/options',
    'techniques/crowds/database',
    'techniques/crowds/tokens',
  ],
];

/** What StrykerJS says of a change that no test has noticed. */
const OPEN = new Set(['Survived', 'NoCoverage']);

/** The results of StrykerJS, of which some that had survived are noticed now. */
export async function testFurther(mutants, { folder, sample, workers }) {
  const { files, changes } = await changesOf(folder, sample);
  const journal = new Journal(`.stryker/further-${folder}-${sample}.json`);
  const unnoticed = new Set(mutants.filter(({ status }) => OPEN.has(status)).map(placeOf));
  const open = new Set(changes.filter((change) => unnoticed.has(placeOf(change))));
  if (open.size !== unnoticed.size)
    throw new Error('StrykerJS has made other changes than its instrumenter: run it again.');
  const note = (change, by) => {
    journal.add(change, by);
    if (by !== undefined) open.delete(change);
    const { id, file, mutatorName } = change;
    const { line } = change.location.start;
    const what = by === undefined ? 'survived' : `noticed: ${by}`;
    console.log(`mutation: ${id} ${file}:${line} ${mutatorName} ${what}`);
  };
  for (const change of open) if (journal.noticedBy(change) !== undefined) open.delete(change);
  console.log(`mutation: ${open.size} of ${changes.length} changes are tested further`);
  const [worlds, specs] = [new Worlds(files), new Specs(files)];
  const play = async (seeds) => {
    const covered = await worlds.covered(seeds);
    const coming = [...open].filter(({ id }) => covered.has(id));
    await atOnce(workers, coming, async (change) => {
      note(change, await worlds.violationWith(change, seeds));
    });
  };
  try {
    await play(SEEDS.first);
    const bySpec = await specs.covered(homesOf(folder));
    await atOnce(workers, [...open], async (change) => {
      let red;
      for (const some of chosenFor(change, bySpec, folder))
        if (some.length > 0) red ??= await specs.redWith(change, some);
      note(change, red);
    });
    await play(SEEDS.more);
  } finally {
    worlds.remove();
    specs.remove();
  }
  const survivors = new Set([...open].map(placeOf));
  return mutants.map((mutant) => {
    const place = placeOf(mutant);
    return unnoticed.has(place) && !survivors.has(place) ? { ...mutant, status: 'Killed' } : mutant;
  });
}

/** So many of them at a time. */
async function atOnce(count, items, work) {
  const queue = items.values();
  const worker = async () => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: count }, worker));
}

/** By which one change is known to both. */
function placeOf({ fileName, file = relative('.', fileName), location, mutatorName, replacement }) {
  const { start, end } = location;
  const range = [start.line, start.column, end.line, end.column].join(':');
  return [file, range, mutatorName, replacement].join(' ');
}

const homesOf = (folder) => {
  const homes = [`${folder}/`, ...HOMES].map((home) => `test/${home}`);
  return specsOf('all').filter((spec) => homes.some((home) => spec.startsWith(home)));
};

/** The specs that a change meets, first the quick ones: they come by it, and there is time for them. */
function chosenFor({ id }, bySpec, folder) {
  const measured = JSON.parse(readFileSync('test/times.json', 'utf8'));
  const secondsOf = (spec) => measured[spec] ?? QUICK_S;
  const rank = (spec) => secondsOf(spec) * (spec.startsWith(`test/${folder}/`) ? 0.5 : 1);
  const covering = [...bySpec]
    .filter(([, ids]) => ids.has(id))
    .map(([spec]) => spec)
    .sort((a, b) => rank(a) - rank(b));
  const withinTime = (seconds, specs) => {
    let left = seconds;
    return specs.filter((spec) => (left -= secondsOf(spec)) >= 0);
  };
  const isQuick = (spec) => secondsOf(spec) <= QUICK_S;
  return [
    withinTime(SPEC_SECONDS.quick, covering.filter(isQuick)),
    withinTime(
      SPEC_SECONDS.slow,
      covering.filter((spec) => !isQuick(spec)),
    ),
  ];
}

/** What has become of each change, for the next run and for readers. */
class Journal {
  #path;
  #entries;

  constructor(path) {
    this.#path = path;
    this.#entries = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {};
  }

  add(change, by) {
    const { file, location, mutatorName, original, replacement } = change;
    const { line } = location.start;
    this.#entries[this.#nameOf(change)] = { file, line, mutatorName, original, replacement, by };
    mkdirSync('.stryker', { recursive: true });
    writeFileSync(this.#path, JSON.stringify(this.#entries, undefined, 2));
  }

  noticedBy(change) {
    return this.#entries[this.#nameOf(change)]?.by;
  }

  /** Another name when the file is another. */
  #nameOf(change) {
    const hash = createHash('sha256').update(readFileSync(change.file)).digest('hex');
    return `${hash.slice(0, 12)} ${placeOf(change)}`;
  }
}
