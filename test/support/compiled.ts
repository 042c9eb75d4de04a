import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const projectRoot = fileURLToPath(new URL('../../', import.meta.url));

/** The compiled project, which `scripts/compile.mjs` has made before the tests began. */
export function compiledProject(): string {
  const folder = process.env.HOLDFAST_COMPILED;
  if (folder === undefined)
    throw new Error('The project was not compiled: run jest by "npm test".');
  return folder;
}

/** What became of a TypeScript file of this project: a program that Node runs as it is. */
export function compiledFile(source: URL): string {
  // A child process of a test is in the compiled project itself.
  const file = relative(projectRoot, fileURLToPath(source)).replace(/ts$/, 'js');
  return join(compiledProject(), file);
}
