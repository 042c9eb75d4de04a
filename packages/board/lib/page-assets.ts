import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import folder from './page-folder.cjs';

interface PageFile {
  readonly text: string;
  readonly type: string;
}

const fileOf = (name: string, type: string): readonly [string, PageFile] => [
  name,
  { text: readFileSync(join(folder, name), 'utf8'), type: `${type}; charset=utf-8` },
];

const FILES = new Map([fileOf('page.js', 'text/javascript'), fileOf('page.css', 'text/css')]);

/** A file of the page, as it was built: `page.js` or `page.css`. */
export const pageFile = (name: string): PageFile | undefined => FILES.get(name);

/** Differs for files that differ: a browser may keep those of one version. */
export const PAGE_VERSION = [...FILES.values()]
  .reduce((hash, { text }) => hash.update(text), createHash('sha256'))
  .digest('hex')
  .slice(0, 16);
