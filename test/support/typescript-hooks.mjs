/** Module hooks of Node: finds the `.ts` file behind an import that ends in `.js`, and compiles it with swc. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { transform } from '@swc/core';
import jestConfig from '../../jest.config.js';

const [, swcOptions] = Object.values(jestConfig.transform)[0];
const library = new URL('../../lib/', import.meta.url);
const entryPoints = {
  'nestjs-holdfast': new URL('index.ts', library).href,
  'nestjs-holdfast/testing': new URL('testing/index.ts', library).href,
};

export async function resolve(specifier, context, nextResolve) {
  if (entryPoints[specifier]) return nextResolve(entryPoints[specifier], context);
  if (specifier.startsWith('.') && specifier.endsWith('.js') && context.parentURL) {
    const source = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL);
    if (existsSync(source)) return nextResolve(source.href, context);
  }
  return nextResolve(specifier, context);
}

export async function load(url, context, nextLoad) {
  if (!url.startsWith('file:') || !url.endsWith('.ts')) return nextLoad(url, context);
  const filename = fileURLToPath(url);
  const { code } = await transform(await readFile(filename, 'utf8'), {
    ...swcOptions,
    filename,
    swcrc: false,
  });
  return { format: 'module', shortCircuit: true, source: code };
}
