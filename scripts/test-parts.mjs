/**
 * The parts of the tests. What a spec imports says which of them it belongs to, so no list has to be kept.
 *
 * - `main`, which `npm test` runs: everything but the samples and what takes long
 * - `unit`: what needs no server, no other process and no compiler
 * - `soak`: what keeps the machine busy and measures how late it is (`test/techniques/soak/`, `test/techniques/simulation/` without its
 *   explorer), and what has more to do when it has the time (test/support/soak.ts), at its whole length
 * - `busy`: those of `soak` that are not in `main`
 * - `long`: what takes long, mostly because it waits: the conformance suites over one or two masters in a list, and over several of which
 *   some are dead, far or silent, the page, the command line and health checks, and what needs a compiler, many servers or more than 4 s of
 *   a processor for one subject
 * - `hostile`: what is tried with random inputs (test/support/cases.ts), the model of Redis too, with a million of each
 * - `samples`: the programs of `sample/`, and what needs PostgreSQL
 * - `browser`: what needs a browser (`test/board/browser/`)
 * - `site`: what needs a browser and the documentation site (`test/claims/site/`)
 * - `all`: every spec, for `npm test -- test/queue`
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const projectRoot = dirname(dirname(fileURLToPath(import.meta.url)));
const SPEC = /\.spec\.ts$/;
const NOT_OURS = /^claims\/apps\/templates\//;
const SAMPLE = /^test\/claims\/(sample\/|patterns\/transactions\.)/;
const BROWSER = /^test\/board\/browser\//;
const SITE = /^test\/claims\/site\//;
const BUSY = /^test\/techniques\/(soak\/|simulation\/(?!explorer\/))/;
const SEVERAL = /^test\/techniques\/conformance\/\w+-(dead|far|few|silent)\./;
/** What operators use starts applications and programs by the dozen. */
const OF_OPERATORS =
  /^test\/(board\/(actions|events|guards|page)\.|terminus\/terminus\.|admin\/(admin-several|frozen)\.|cli\/(?!text|command-line|checks|reports)|leader\/processes\.|lease\/forgotten-locks\.)/;
/** A compiler, many servers, or more than 4 s of a processor, for what is also tested elsewhere or seldom changes. */
const HEAVY =
  /^test\/(claims\/types\/|techniques\/hostile\/|claims\/docs\/(fencing|operations|options|will-it-work)\.|techniques\/conformance\/(sentinel|once|cluster|places|fail-over)\.|claims\/transports\/|claims\/alerts\/|claims\/track-record\/(connections|quorum|quorum-line|many-keys|several-keys|dead-places)\.|store\/(glide|iovalkey|node-redis|sharded-line|silent-masters)\.|migrate\/compiles\.|redlock\/documented\.|claims\/interop\/|techniques\/mutation\/)/;
const isLong = (spec) => [BUSY, SEVERAL, OF_OPERATORS, HEAVY].some((long) => long.test(spec));
const HAS_SHARE = 'test/support/soak.ts';
const HAS_CASES = 'test/support/cases.ts';
/** `test/support/redis-process.ts` starts servers, by `node:child_process`. */
const NOT_UNIT = new Set(['node:child_process', 'typescript']);

const isSoak = (spec) => BUSY.test(spec) || importsOf(spec).has(HAS_SHARE);
const isMain = (spec) =>
  !isLong(spec) && ![SAMPLE, BROWSER, SITE].some((other) => other.test(spec));
const isUnit = (spec) => isMain(spec) && disjoint(importsOf(spec), NOT_UNIT);

const BELONGS = {
  main: isMain,
  unit: isUnit,
  soak: isSoak,
  busy: (spec) => isSoak(spec) && !isMain(spec),
  long: (spec) => isLong(spec) && !isSoak(spec),
  hostile: (spec) => importsOf(spec).has(HAS_CASES),
  samples: (spec) => SAMPLE.test(spec),
  browser: (spec) => BROWSER.test(spec),
  site: (spec) => SITE.test(spec),
  all: () => true,
};

/** The names of the parts. */
export const PARTS = Object.keys(BELONGS);

/** The specs of a part, as paths from the root of the project. */
export function specsOf(part) {
  return readdirSync(join(projectRoot, 'test'), { recursive: true })
    .filter((file) => SPEC.test(file) && !NOT_OURS.test(file))
    .map((file) => `test/${file}`)
    .filter((spec) => BELONGS[part](spec))
    .sort();
}

/** Packages and files of the project that a file imports, and those that these import; but not what the library does. */
function importsOf(file, found = new Set()) {
  for (const [, name] of readFileSync(join(projectRoot, file), 'utf8').matchAll(IMPORT)) {
    const imported = name.startsWith('.') ? sourceOf(join(dirname(file), name)) : name;
    if (found.has(imported)) continue;
    found.add(imported);
    if (/^(test|scripts)\//.test(imported)) importsOf(imported, found);
  }
  return found;
}

const IMPORT = /^(?:import|export) (?!type )(?:[^;']*? from )?'([^']+)'/gm;

function sourceOf(path) {
  const source = path.replace(/js$/, 'ts');
  return relative('.', existsSync(join(projectRoot, source)) ? source : path);
}

const disjoint = (set, other) => ![...set].some((item) => other.has(item));
