/**
 * `npm run smoke:node-redis`: sample/node-redis with the packed library and Nest 11, and with Nest 12. It has no ioredis in its
 * node_modules, type-checks with the declarations of the library, locks over HTTP, and ends by itself.
 */
import assert from 'node:assert/strict';
import { cp, readFile, writeFile, mkdir } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { runToTheEnd, startNest, startRedis } from '../../../scripts/processes.mjs';
import { install, pack, projectRoot, run, temporaryFolder } from '../../support/consumer.mjs';

const compiler = join(projectRoot, 'node_modules', '.bin', 'tsc');
const ANSWER_LIMIT_MS = 20_000;
const parent = temporaryFolder('node-redis');

await runToTheEnd('smoke', async () => {
  const { 'nestjs-holdfast': tarball } = await pack(parent);
  process.env.REDIS_URL = await startRedis((line) => console.log(`smoke: ${line}`));
  for (const nest of [11, 12]) await tryApplication(nest, tarball);
});

async function tryApplication(nest, tarball) {
  const root = join(parent, `nest-${nest}`);
  await mkdir(root);
  await writeApplication(root, nest, tarball);
  await install(root);
  assert.ok(!existsSync(join(root, 'node_modules', 'ioredis')), 'ioredis is installed');
  await run(compiler, ['-p', 'tsconfig.json'], root);

  const { url, stop } = await startNest(join(root, 'dist', 'main.js'));
  const signal = AbortSignal.timeout(ANSWER_LIMIT_MS);
  const pay = () => fetch(`${url}/orders/42/pay`, { method: 'POST', signal });
  const answers = await Promise.all([pay(), pay()]);
  const statuses = answers.map(({ status }) => status);
  assert.deepEqual(statuses.toSorted(), [201, 409]);
  assert.equal((await pay()).status, 201);
  await stop();
  console.log(`smoke: node-redis alone, Nest ${nest}: ok`);
}

async function writeApplication(root, nest, tarball) {
  const { devDependencies } = JSON.parse(await readFile(join(projectRoot, 'package.json'), 'utf8'));
  const same = ['redis', 'reflect-metadata', 'rxjs'].map((name) => [name, devDependencies[name]]);
  const ofNest = ['common', 'core', 'platform-express'].map((name) => [
    `@nestjs/${name}`,
    `^${nest}.0.0`,
  ]);
  const manifest = {
    name: 'holdfast-node-redis',
    private: true,
    type: 'module',
    dependencies: Object.fromEntries([...same, ...ofNest, ['nestjs-holdfast', `file:${tarball}`]]),
    devDependencies: { '@types/node': devDependencies['@types/node'] },
  };
  const tsconfig = {
    compilerOptions: {
      target: 'ES2022',
      module: 'NodeNext',
      rootDir: 'src',
      outDir: 'dist',
      strict: true,
      experimentalDecorators: true,
      emitDecoratorMetadata: true,
      // The declarations of the library are to be right without ioredis.
      skipLibCheck: false,
      types: ['node'],
    },
    include: ['src'],
  };
  await writeFile(join(root, 'package.json'), JSON.stringify(manifest));
  await writeFile(join(root, 'tsconfig.json'), JSON.stringify(tsconfig));
  await cp(join(projectRoot, 'sample', 'node-redis', 'src'), join(root, 'src'), {
    recursive: true,
  });
}
