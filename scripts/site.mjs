/** Installs the packages of the documentation site for `npm run test:site`, which opens the explorer: it has a lock file of its own. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { run } from './programs.mjs';

const site = fileURLToPath(new URL('../site/', import.meta.url));

/** Does nothing where they are here; throws where they cannot be installed. */
export function ensureSite(log = console.log) {
  if (existsSync(`${site}node_modules/vitepress`)) return;
  if (!run(log, 'site', ['npm', '--prefix', site, 'ci']))
    throw new Error('The packages of site/ cannot be installed: npm --prefix site ci');
}
