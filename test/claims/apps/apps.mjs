/**
 * `npm run test:apps`: makes the applications that `nest new` 11 and 12 make (12 both kinds), installs the packed library there as README.md
 * says, and puts the examples of the documentation in: they have to build, lint, pass their tests, and answer HTTP requests in production.
 * `npm run test:apps -- nest-12` is one of them.
 */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runToTheEnd, startNest, startRedis } from '../../../scripts/processes.mjs';
import { install, pack, run, temporaryFolder } from '../../support/consumer.mjs';
import { writeApplication } from './application.mjs';
import { documentedBlocks, readAnswer } from './pages.mjs';

const APPLICATIONS = [
  { folder: 'nest-11', type: 'commonjs', schedule: 6, recipe: 'ts-jest' },
  // Before this Node its tests cannot load Nest.
  { folder: 'nest-12-commonjs', type: 'commonjs', schedule: 12, testsNeedNode: '24.9' },
  { folder: 'nest-12', type: 'module', schedule: 12 },
];
const ANSWER_LIMIT_MS = 20_000;

const SWC = ['@swc/jest', '@swc/core'];
/** The settings for decorators. */
const SWCRC = {
  jsc: {
    parser: { syntax: 'typescript', decorators: true },
    transform: { legacyDecorator: true, decoratorMetadata: true },
  },
};

const parent = temporaryFolder('apps');

await runToTheEnd('apps', async () => {
  const documented = await documentedBlocks();
  const { 'nestjs-holdfast': tarball } = await pack(parent);
  const redisUrl = await startRedis((line) => console.log(`apps: ${line}`));
  for (const application of chosen(process.argv.slice(2))) {
    await tryApplication(application, documented, tarball, redisUrl);
  }
});

function chosen(names) {
  const unknown = names.filter((name) => APPLICATIONS.every(({ folder }) => folder !== name));
  if (unknown.length > 0) throw new Error(`There is no ${unknown.join()}.`);
  return APPLICATIONS.filter(({ folder }) => names.length === 0 || names.includes(folder));
}

async function tryApplication(application, documented, tarball, redisUrl) {
  const { folder, type, schedule, testsNeedNode } = application;
  const root = join(parent, folder);
  const step = async (name, work) => {
    const start = performance.now();
    await work().catch((error) => {
      throw new Error(`${folder}: ${name}: ${error.message}`, { cause: error });
    });
    const seconds = ((performance.now() - start) / 1_000).toFixed(1);
    console.log(`apps: ${folder}: ${name}: ok (${seconds} s)`);
  };
  const script = (...args) => step(`npm ${args.join(' ')}`, () => run('npm', args, root));

  await writeApplication(root, application, documented, redisUrl);
  const packages = packagesOf(documented('install'), tarball);
  const added = [`@nestjs/schedule@${schedule}`, ...(type === 'commonjs' ? SWC : [])];
  await step('npm install', () => install(root, ...packages, ...added));
  console.log(`apps: ${folder}: ${(await versions(root)).join(', ')}`);
  await script('run', 'lint');
  await script('run', 'build');
  if (isOlderThan(testsNeedNode)) {
    console.log(`apps: ${folder}: its tests need Node ${testsNeedNode}`);
  } else {
    await script('test');
    await script('run', 'test:e2e');
  }
  await step('start:prod', () => production(root, readAnswer(documented('conflict'))));
  if (type === 'commonjs') {
    await step('jest with @swc/jest', () => testWithSwc(root, JSON.parse(documented('swc-jest'))));
  }
}

function isOlderThan(node = '0') {
  return process.versions.node.localeCompare(node, 'en', { numeric: true }) < 0;
}

/** What README.md installs, with the tarball in the place of the library. */
function packagesOf(command, tarball) {
  const [npm, verb, ...names] = command.trim().split(' ');
  assert.deepEqual([npm, verb, names[0]], ['npm', 'install', 'nestjs-holdfast']);
  return [tarball, ...names.slice(1)];
}

async function versions(root) {
  const names = ['@nestjs/core', '@nestjs/schedule', 'ioredis', 'typescript'];
  const manifests = names.map((name) => join(root, 'node_modules', name, 'package.json'));
  const texts = await Promise.all(manifests.map((file) => readFile(file, 'utf8')));
  return texts.map((text, at) => `${names[at]} ${JSON.parse(text).version}`);
}

/** Starts the program of `start:prod`. Of two payments at once one is made, and the other gets the answer in README.md. */
async function production(root, conflict) {
  const { scripts } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  const [node, program] = scripts['start:prod'].split(' ');
  assert.equal(node, 'node');
  const { url, stop } = await startNest(join(root, program));
  const signal = AbortSignal.timeout(ANSWER_LIMIT_MS);
  const post = (path) => fetch(url + path, { method: 'POST', signal });

  const payments = [post('/orders/42/pay'), post('/orders/42/pay')];
  const refused = await Promise.race(payments);
  assert.equal(refused.status, conflict.status);
  assert.deepEqual(await refused.json(), conflict.body);
  for (const name of conflict.headers) assert.ok(refused.headers.has(name), name);

  const statuses = (await Promise.all(payments)).map(({ status }) => status);
  assert.deepEqual(statuses.toSorted(), [201, 409]);
  assert.equal(await (await fetch(`${url}/tick`, { signal })).text(), 'tick');
  await stop();
}

async function testWithSwc(root, settings) {
  await writeFile(join(root, '.swcrc'), JSON.stringify(SWCRC));
  await writeFile(join(root, 'swc-jest.json'), JSON.stringify({ ...settings, rootDir: 'src' }));
  await run('npx', ['jest', '--config', 'swc-jest.json', '--testRegex', 'spec.ts$'], root);
}
