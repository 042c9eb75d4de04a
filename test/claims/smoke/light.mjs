// In an application with the published package: an import reads few files, no client of Redis, and no parser before the first key
// that needs one.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, sep } from 'node:path';
import 'nestjs-holdfast';
import 'nestjs-holdfast/testing';

const MOST_FILES = 12;

const read = Object.keys(createRequire(import.meta.url).cache);
assert.ok(read.length > 0); // it is known what was read
for (const name of ['acorn', 'ioredis', 'redis', join('@redis', 'client')])
  assert.deepEqual(
    read.filter((file) => file.includes(join(sep, name, sep))),
    [],
  );
const DIST = 'node_modules/nestjs-holdfast/dist';
/** Of the package, what these two imports lead to. Other entries have files of their own. */
const files = new Set();
const follow = (file) => {
  if (files.has(file)) return;
  files.add(file);
  for (const [, next] of readFileSync(file, 'utf8').matchAll(/(?:from|import) '(\.[^']+)'/g))
    follow(join(dirname(file), next));
};
follow(join(DIST, 'index.js'));
follow(join(DIST, 'testing', 'index.js'));
assert.ok(files.size > 2 && files.size <= MOST_FILES, [...files].join());
