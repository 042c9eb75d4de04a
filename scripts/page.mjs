/**
 * Makes the two files of the board's page, `page.js` and `page.css`: `node scripts/page.mjs <folder>`. `npm run build` does so for the
 * package, scripts/compile.mjs for the tests.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { minify, transform } from '@swc/core';
import { rollup } from 'rollup';

const page = fileURLToPath(new URL('../packages/board/lib/page/', import.meta.url));
const require = createRequire(import.meta.url);

const isOurs = (id) => id.startsWith(page);

/** Finds preact as a browser gets it, and `./time.js` where it was written: `time.tsx` or `time.ts`. */
const found = {
  name: 'found',
  async resolveId(id, importer) {
    if (/^preact\b/.test(id)) return require.resolve(id).replace(/\.js$/, '.mjs');
    if (importer === undefined || !id.startsWith('./') || !isOurs(importer)) return null;
    for (const ending of ['.ts', '.tsx']) {
      const source = join(page, id.replace(/\.js$/, ending));
      if (await readFile(source).catch(() => undefined)) return source;
    }
    return null;
  },
};

const compiled = {
  name: 'compiled',
  transform: (code, id) =>
    isOurs(id)
      ? transform(code, {
          filename: id,
          swcrc: false,
          jsc: {
            target: 'es2022',
            parser: { syntax: 'typescript', tsx: true },
            transform: { react: { runtime: 'automatic', importSource: 'preact' } },
          },
        })
      : null,
};

/** Colours and names have no spaces that matter at the ends of a line. */
const smaller = (css) => css.replace(/\s*\n\s*/g, '').replace(/;}/g, '}');

/** Writes `page.js` and `page.css` into this folder. */
export async function writePage(folder) {
  await mkdir(folder, { recursive: true });
  const work = await rollup({ input: join(page, 'page.tsx'), plugins: [found, compiled] });
  const { output } = await work.generate({ format: 'es' });
  await work.close();
  const { code } = await minify(output[0].code, { module: true, compress: true, mangle: true });
  await writeFile(join(folder, 'page.js'), code);
  const css = await readFile(join(page, 'page.css'), 'utf8');
  await writeFile(join(folder, 'page.css'), smaller(css));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await writePage(process.argv[2]);
