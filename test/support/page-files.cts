import child_process = require('node:child_process');
import fs = require('node:fs');
import os = require('node:os');
import path = require('node:path');

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-page-'));
child_process.execFileSync(process.execPath, [path.resolve('scripts/page.mjs'), folder]);
const files = new Map(
  ['page.js', 'page.css'].map((name) => [name, fs.readFileSync(path.join(folder, name), 'utf8')]),
);
fs.rmSync(folder, { recursive: true });

/** The files of the page, built for this spec: there is no package beside the sources. */
export = (name: string): string => files.get(name) ?? '';
