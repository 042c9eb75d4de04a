/**
 * `npm run test:compat -- --nest 11 --ioredis 5 --node 24 --redis-server PATH [arguments for jest]`: copies the tree into a
 * temporary folder, installs these major versions there, type-checks the library and runs the tests on that Node, against that
 * server. Each of the four may be left out, but not all of them.
 */
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const projectRoot = dirname(dirname(fileURLToPath(import.meta.url)));

const graphql = (major) => ({
  '@nestjs/graphql': major,
  '@nestjs/apollo': major,
  '@nestjs/mercurius': major,
});

/** Packages of Nest that did not share its major version from the start; the CLI is only a tool of ours. */
const OTHER_MAJORS = {
  11: {
    '@nestjs/cli': undefined,
    '@nestjs/event-emitter': 3,
    '@nestjs/schedule': 6,
    ...graphql(13),
  },
  12: { '@nestjs/cli': undefined, ...graphql(14) },
};

function readArguments(args) {
  const wanted = {};
  const forJest = [];
  for (let at = 0; at < args.length; at++) {
    const name = /^--(nest|ioredis|node|redis-server)$/.exec(args[at])?.[1];
    if (!name) forJest.push(args[at]);
    else if (args[at + 1] === undefined) throw new Error(`compat: --${name} needs a value`);
    else wanted[name] = args[++at];
  }
  if (Object.keys(wanted).length === 0) {
    throw new Error('compat: say which versions, for instance: --nest 11 --ioredis 5 --node 24');
  }
  const { nest, node, 'redis-server': redisServer } = wanted;
  if (nest !== undefined && !(nest in OTHER_MAJORS)) {
    throw new Error(`compat: --nest is one of ${Object.keys(OTHER_MAJORS).join(', ')}`);
  }
  if (node !== undefined && !/^\d+(\.\d+){0,2}$/.test(node)) {
    throw new Error('compat: --node is a version, such as 24');
  }
  if (redisServer !== undefined && !existsSync(redisServer)) {
    throw new Error(`compat: there is no server program at ${redisServer}`);
  }
  return { ...wanted, redisServer: redisServer && resolve(redisServer), forJest };
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
  const { status, error } = spawnSync(program, args, { cwd, env, stdio: 'inherit' });
  if (status !== 0) throw new Error(`compat: ${program} failed (${error?.message ?? status})`);
}

function installed(root, name) {
  const manifest = readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8');
  return `${name} ${JSON.parse(manifest).version}`;
}

/** Puts that Node first in the path of what runs from now on. */
function useNode(version, ...quietly) {
  const folder = join(copy, '.node');
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{}');
  run(folder, 'npm', 'install', '--no-save', ...quietly, `node@${version}`);
  env.PATH = [join(folder, 'node_modules', '.bin'), env.PATH].join(delimiter);
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
/** Of what runs here. */
const env = { ...process.env };
try {
  const { forJest, node, redisServer, ...majors } = readArguments(process.argv.slice(2));
  copy = mkdtempSync(join(tmpdir(), 'holdfast-compat-'));
  copyTree(copy);
  const quietly = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
  run(copy, 'npm', 'install', '--no-save', ...quietly, ...packagesFor(majors));
  console.log(`compat: ${installed(copy, '@nestjs/core')}, ${installed(copy, 'ioredis')}`);
  if (node !== undefined) useNode(node, ...quietly);
  if (redisServer !== undefined) env.REDIS_SERVER_BIN = redisServer;
  run(copy, 'node', '--version');
  run(copy, 'npm', 'run', 'build');
  run(copy, 'npm', 'test', '--', ...forJest);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  if (copy) rmSync(copy, { recursive: true, force: true });
}
