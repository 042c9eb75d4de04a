/** Module hooks of Node: finds the `.ts` (`.cts`) file behind an import that ends in `.js` (`.cjs`), and compiles it with swc. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transform } from '@swc/core';
import jestConfig from '../../jest.config.js';

/** What jest compiles such a file to, and how. */
const FORMATS = { '.ts': 'module', '.cts': 'commonjs' };
const optionsFor = (url) =>
  Object.entries(jestConfig.transform).find(([pattern]) => new RegExp(pattern).test(url))[1][1];

const library = new URL('../../lib/', import.meta.url);
const entryPoints = {
  'nestjs-holdfast': new URL('index.ts', library).href,
  'nestjs-holdfast/testing': new URL('testing/index.ts', library).href,
};

export async function resolve(specifier, context, nextResolve) {
  if (entryPoints[specifier]) return nextResolve(entryPoints[specifier], context);
  if (/^\..*\.c?js$/.test(specifier) && context.parentURL) {
    const source = new URL(specifier.replace(/js$/, 'ts'), context.parentURL);
    if (existsSync(source)) return nextResolve(source.href, context);
  }
  return nextResolve(specifier, context);
}

export async function load(url, context, nextLoad) {
  const format = FORMATS[extname(url)];
  if (!url.startsWith('file:') || format === undefined) return nextLoad(url, context);
  const filename = fileURLToPath(url);
  const { code } = await transform(await readFile(filename, 'utf8'), {
    ...optionsFor(url),
    filename,
    swcrc: false,
  });
  return { format, shortCircuit: true, source: code };
}
