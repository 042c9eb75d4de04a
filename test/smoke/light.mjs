// In an application with the published package: an import reads few files, and no parser before the first key that needs one.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, sep } from 'node:path';
import 'nestjs-holdfast';
import 'nestjs-holdfast/testing';

const MOST_FILES = 10;

const read = Object.keys(createRequire(import.meta.url).cache);
assert.ok(read.some((file) => file.includes(`${sep}ioredis${sep}`))); // it is known what was read
assert.deepEqual(
  read.filter((file) => file.includes(`${sep}acorn${sep}`)),
  [],
);
const dist = join('node_modules', 'nestjs-holdfast', 'dist');
const files = new Set();
for (const entry of ['index.js', 'testing/index.js']) follow(join(dist, entry));
assert.ok(files.size <= MOST_FILES, [...files].join());

/** What a file of the package imports of the others. */
function follow(file) {
  if (files.has(file)) return;
  files.add(file);
  for (const [, name] of readFileSync(file, 'utf8').matchAll(/from '(\.[^']+)'/g))
    follow(join(dirname(file), name));
}
