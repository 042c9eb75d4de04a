/**
 * `npm run test:compat -- --nest 11 --ioredis 5 [arguments for jest]`: copies the tree into a temporary
 * folder, installs these major versions there, type-checks the library and runs the tests.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const projectRoot = dirname(dirname(fileURLToPath(import.meta.url)));

/** Packages of Nest that did not share its major version from the start; the CLI is only a tool of ours. */
const OTHER_MAJORS = {
  11: { '@nestjs/cli': undefined, '@nestjs/event-emitter': 3, '@nestjs/schedule': 6 },
  12: { '@nestjs/cli': undefined },
};

function readArguments(args) {
  const majors = {};
  const forJest = [];
  for (let at = 0; at < args.length; at++) {
    const name = /^--(nest|ioredis)$/.exec(args[at])?.[1];
    if (name) majors[name] = args[++at];
    else forJest.push(args[at]);
  }
  if (majors.nest === undefined && majors.ioredis === undefined) {
    throw new Error('compat: say which versions, for instance: --nest 11 --ioredis 5');
  }
  if (majors.nest !== undefined && !(majors.nest in OTHER_MAJORS)) {
    throw new Error(`compat: --nest is one of ${Object.keys(OTHER_MAJORS).join(', ')}`);
  }
  return { ...majors, forJest };
}

/** What npm has to install to get these majors. */
function packagesFor({ nest, ioredis }) {
  const { devDependencies } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));
  const majors = {
    ...(nest && Object.fromEntries(nestPackages(devDependencies).map((name) => [name, nest]))),
    ...(nest && OTHER_MAJORS[nest]),
    ...(ioredis && { ioredis }),
  };
  return Object.entries(majors)
    .filter(([, major]) => major !== undefined)
    .map(([name, major]) => `${name}@${major}`);
}

const nestPackages = (dependencies) =>
  Object.keys(dependencies).filter((name) => name.startsWith('@nestjs/'));

function run(cwd, program, ...args) {
  console.log(`compat: ${[program, ...args].join(' ')}`);
  const { status, error } = spawnSync(program, args, { cwd, stdio: 'inherit' });
  if (status !== 0) throw new Error(`compat: ${program} failed (${error?.message ?? status})`);
}

function installed(root, name) {
  const manifest = readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8');
  return `${name} ${JSON.parse(manifest).version}`;
}

/** The files that git knows or would add. */
function copyTree(destination) {
  const listing = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  const { status, stdout, stderr } = spawnSync('git', listing, { cwd: projectRoot });
  if (status !== 0) throw new Error(`compat: git ls-files failed: ${stderr}`);
  for (const file of String(stdout).split('\0')) {
    const source = join(projectRoot, file);
    if (file !== '' && existsSync(source)) cpSync(source, join(destination, file));
  }
}

let copy;
try {
  const { forJest, ...majors } = readArguments(process.argv.slice(2));
  copy = mkdtempSync(join(tmpdir(), 'holdfast-compat-'));
  copyTree(copy);
  const quietly = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
  run(copy, 'npm', 'install', '--no-save', ...quietly, ...packagesFor(majors));
  console.log(`compat: ${installed(copy, '@nestjs/core')}, ${installed(copy, 'ioredis')}`);
  run(copy, 'npm', 'run', 'build');
  run(copy, 'npm', 'test', '--', ...forJest);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  if (copy) rmSync(copy, { recursive: true, force: true });
}
