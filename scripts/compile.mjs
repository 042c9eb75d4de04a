/**
 * Compiles all TypeScript of the project as jest compiles it (jest.config.js), for the processes that tests start: one that compiles
 * for itself takes a second more of a core to start.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transformSync } from '@swc/core';
import { TRANSFORM } from '../jest.config.js';

const projectRoot = dirname(dirname(fileURLToPath(import.meta.url)));
const ROOMS = ['lib', 'packages', 'test', 'sample', 'scripts'];
const LEFT_OUT =
  /(^|\/)(node_modules|build|dist|templates|board\/lib\/page)\/|\.d\.[cm]?ts$|\.spec\.ts$/;

/** The board's page, of which scripts/page.mjs makes the files that a browser loads. */
const PAGE = 'packages/board/lib/page';
const KEPT_MS = 24 * 60 * 60 * 1_000;

/** Within `node_modules`, so that packages are found from there. */
const CACHE = join(projectRoot, 'node_modules', '.cache', 'nestjs-holdfast', 'compiled');

/** The entries of the packages for the samples, and for tests that use them as applications do. */
const MANIFESTS = {
  '.': { '.': './lib/index.js', './*': './lib/*/index.js' },
  ...Object.fromEntries(
    readdirSync(join(projectRoot, 'packages')).map((name) => [
      `packages/${name}`,
      { '.': './lib/index.js' },
    ]),
  ),
};

/**
 * The folder with the compiled project: `test/claims/track-record/waits.ts` is `test/queue/waits.js` there. It is named by what it was made of,
 * so the same sources are compiled once.
 */
export function compiledProject() {
  const sources = ROOMS.flatMap(sourcesOf);
  const folder = join(CACHE, fingerprint(sources));
  if (!isThere(folder)) {
    mkdirSync(CACHE, { recursive: true });
    removeOld();
    const fresh = mkdtempSync(join(CACHE, 'new-'));
    for (const source of sources) compile(source, fresh);
    const pageFiles = join(fresh, 'packages/board/lib/board-page');
    execFileSync(process.execPath, [join(projectRoot, 'scripts/page.mjs'), pageFiles]);
    for (const [place, exports] of Object.entries(MANIFESTS)) writePackage(fresh, place, exports);
    moveTo(folder, fresh);
  }
  utimesSync(folder, new Date(), new Date());
  return folder;
}

/** The packages find each other, and the programs find them, as in an application. */
function writePackage(folder, place, exports) {
  const { name, version } = JSON.parse(
    readFileSync(join(projectRoot, place, 'package.json'), 'utf8'),
  );
  const root = join(folder, place);
  writeFileSync(
    join(root, 'package.json'),
    JSON.stringify({ name, version, type: 'module', exports }),
  );
  // What npm did not put beside the dependencies of the others.
  const own = join(projectRoot, place, 'node_modules');
  if (place !== '.' && existsSync(own)) symlinkSync(own, join(root, 'node_modules'));
  const link = join(folder, 'node_modules', name);
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(relative(dirname(link), root), link);
}

function sourcesOf(room) {
  return readdirSync(join(projectRoot, room), { recursive: true })
    .map((file) => join(room, file))
    .filter((file) => /\.(c?ts|mjs|proto|lua)$/.test(file) && !LEFT_OUT.test(file))
    .sort();
}

function fingerprint(sources) {
  const hash = createHash('sha256');
  const page = readdirSync(join(projectRoot, PAGE)).map((file) => `${PAGE}/${file}`);
  hash.update(String(process.env.HOLDFAST_CLIENT));
  for (const source of [...sources, ...page.sort(), 'jest.config.js', 'scripts/compile.mjs']) {
    hash.update(source).update('\0');
    hash.update(readFileSync(join(projectRoot, source))).update('\0');
  }
  return hash.digest('hex').slice(0, 20);
}

function compile(source, folder) {
  const [from, to] = [join(projectRoot, source), join(folder, source)];
  mkdirSync(dirname(to), { recursive: true });
  if (/\.(mjs|proto|lua)$/.test(source)) {
    copyFileSync(from, to);
    return;
  }
  const text = compiledText(source, readFileSync(from, 'utf8'));
  writeFileSync(to.replace(/ts$/, 'js'), withClient(source, text));
}

/** As jest.config.js: with HOLDFAST_CLIENT, the library finds Redis by the stand-in of the tests. */
function withClient(source, text) {
  if (process.env.HOLDFAST_CLIENT === undefined || !source.startsWith('lib/')) return text;
  const standIn = relative(dirname(source), 'test/support/clients/redis-location.js');
  return text.replace(/(?<=from ')\.{1,2}\/([\w./-]*\/)?redis-location\.js(?=')/g, standIn);
}

/** What a source file of the project, by its path from the root, would be compiled to if this were its text. */
export function compiledText(source, text) {
  if (!/\.c?ts$/.test(source)) return text;
  const [, [, options]] = Object.entries(TRANSFORM).find(([pattern]) =>
    new RegExp(pattern).test(source),
  );
  const filename = join(projectRoot, source);
  return transformSync(text, { ...options, filename, swcrc: false }).code;
}

/** Whole or not at all: another run may compile the same. */
function moveTo(folder, fresh) {
  try {
    renameSync(fresh, folder);
  } catch (error) {
    rmSync(fresh, { recursive: true });
    if (!isThere(folder)) throw error;
  }
}

function removeOld() {
  for (const name of readdirSync(CACHE)) {
    const folder = join(CACHE, name);
    if (Date.now() - statSync(folder).mtimeMs > KEPT_MS) rmSync(folder, { recursive: true });
  }
}

const isThere = (folder) => statSync(folder, { throwIfNoEntry: false }) !== undefined;
