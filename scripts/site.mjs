/**
 * Installs the packages of the documentation site, which has a lock file of its own, and builds it for `npm run test:site`, which opens it
 * in a browser.
 */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { run } from './programs.mjs';

const site = fileURLToPath(new URL('../site/', import.meta.url));

/** @throws where one of the two fails */
export function buildSite(log = console.log) {
  const npm = (...args) => {
    if (!run(log, 'site', ['npm', '--prefix', site, ...args]))
      throw new Error(`The site cannot be built: npm --prefix site ${args.join(' ')}`);
  };
  if (!existsSync(`${site}node_modules/vitepress`)) npm('ci');
  npm('run', 'build');
}
