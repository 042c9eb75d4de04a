/** Makes the two files of the board's page: `node scripts/page.mjs <folder>`. Part of `npm run build`. */
import { copyFile, mkdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rollup } from 'rollup';
import ts from 'typescript';

const page = fileURLToPath(new URL('../lib/board/page/', import.meta.url));
const require = createRequire(import.meta.url);

const browser = {
  name: 'browser',
  resolveId: (id) =>
    id === 'preact' || id.startsWith('preact/')
      ? require.resolve(id).replace(/\.js$/, '.mjs')
      : null,
  load: (id) => (id.endsWith('.tsx') ? readFile(id, 'utf8') : null),
  transform: (code, id) =>
    id.endsWith('.tsx')
      ? ts.transpileModule(code, {
          fileName: id,
          compilerOptions: {
            target: ts.ScriptTarget.ES2022,
            module: ts.ModuleKind.ESNext,
            jsx: ts.JsxEmit.ReactJSX,
            jsxImportSource: 'preact',
            removeComments: true,
          },
        }).outputText
      : null,
};

/** Writes `page.js` and `page.css` into this folder. */
export async function writePage(folder) {
  await mkdir(folder, { recursive: true });
  const work = await rollup({ input: join(page, 'page.tsx'), plugins: [browser] });
  await work.write({ file: join(folder, 'page.js'), format: 'es' });
  await work.close();
  await copyFile(join(page, 'page.css'), join(folder, 'page.css'));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await writePage(process.argv[2]);
