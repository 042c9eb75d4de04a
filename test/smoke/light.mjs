// In an application with the published package: an import reads few files, and no parser before the first key that needs one.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { sep } from 'node:path';
import 'nestjs-holdfast';
import 'nestjs-holdfast/testing';

const MOST_FILES = 9;

const read = Object.keys(createRequire(import.meta.url).cache);
assert.ok(read.some((file) => file.includes(`${sep}ioredis${sep}`))); // it is known what was read
assert.deepEqual(
  read.filter((file) => file.includes(`${sep}acorn${sep}`)),
  [],
);
const modules = readdirSync('node_modules/nestjs-holdfast/dist', { recursive: true });
const ofOtherEntries = /^(jest\b|(?!testing\b)\w+[/\\])/;
const files = modules.filter((name) => /\.c?js$/.test(name) && !ofOtherEntries.test(name));
assert.ok(files.length <= MOST_FILES, files.join());
