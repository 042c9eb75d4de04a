/**
 * The second half of `npm run build`: makes few files of what the compiler wrote to `build/`, and puts them into the `dist/` of a package:
 * `node scripts/bundle.mjs .` or `packages/cli`. Node reads one file much faster than two hundred. Names and lines stay as they are, so
 * that a stack trace can be read; comments go, but not those of the declarations, which an editor shows.
 */
import { copyFile, readdir, readFile, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';
import ts from 'typescript';
import { luaFiles } from './lua-files.mjs';
import { writePage } from './page.mjs';

const projectRoot = fileURLToPath(new URL('..', import.meta.url));

/** `admin/index` of `./dist/admin/index.js`. */
const entryOf = (file) => file.slice('./dist/'.length, -'.js'.length);

/** Other packages, and what has to be CommonJS: its files stand beside the bundle. */
const outside = (built) => ({
  name: 'outside',
  resolveId(id) {
    if (id.endsWith('.cjs')) return { id: join(built, basename(id)), external: 'relative' };
    return /^[./]/.test(id) ? null : { id, external: true };
  },
});

/** Four spaces become one. */
const slightlyIndented = (code) =>
  code.replace(/^(?: {4})+/gm, ({ length }) => ' '.repeat(length / 4));

const withoutComments = {
  name: 'without-comments',
  transform: (code) =>
    slightlyIndented(
      ts.transpileModule(code, {
        compilerOptions: {
          target: ts.ScriptTarget.ES2022,
          module: ts.ModuleKind.ESNext,
          removeComments: true,
        },
      }).outputText,
    ),
};

/** A file of their own: an entry that names errors reads nothing else. */
const OF_ERRORS = /\/build\/errors\b/;

const EXPECTED = [
  /'this' keyword is equivalent to 'undefined'/, // the compiler's helper for decorators asks for it
  /still references private shared type exports/, // the interfaces of the options are derived from schemas that are not exported
];

async function bundle({ built, target }, entries, ending, ...plugins) {
  const work = await rollup({
    input: Object.fromEntries(entries.map((name) => [name, join(built, `${name}${ending}`)])),
    plugins: [outside(built), ...plugins],
    onwarn(warning) {
      if (EXPECTED.some((expected) => expected.test(warning.message))) return;
      throw new Error(`bundle: ${warning.message}`);
    },
  });
  await work.write({
    dir: target,
    entryFileNames: `[name]${ending}`,
    chunkFileNames: ({ name }) => `${name === 'errors' ? name : 'shared'}${ending}`,
    manualChunks: (id) => (OF_ERRORS.test(id) ? 'errors' : undefined),
    hoistTransitiveImports: false,
  });
  await work.close();
}

/** @param place the folder of a package: `.` or `packages/cli` */
async function bundlePackage(place) {
  const root = join(projectRoot, place);
  const built = join(projectRoot, 'build', place === '.' ? '' : join(place, 'lib'));
  const target = join(root, 'dist');
  const { exports, bin = {} } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  const entries = Object.values(exports).flatMap(({ types, default: file }) =>
    types === undefined ? [] : entryOf(file),
  );
  // Nobody imports a program, so it needs no types.
  const programs = Object.values(bin).map(entryOf);
  await rm(target, { recursive: true, force: true });
  await bundle({ built, target }, [...entries, ...programs], '.js', luaFiles, withoutComments);
  if (entries.length > 0) await bundle({ built, target }, entries, '.d.ts', dts());
  const files = await readdir(built, { recursive: true });
  for (const file of files.filter((name) => name.endsWith('.cjs')))
    await copyFile(join(built, file), join(target, basename(file)));
  if (basename(root) === 'board') await writePage(join(target, 'board-page'));
}

for (const place of process.argv.slice(2)) await bundlePackage(place);
