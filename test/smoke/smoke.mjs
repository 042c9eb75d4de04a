/**
 * `npm run smoke`: packs the built library as npm would publish it and installs the tarball into two
 * applications. Each type-checks and compiles app.ts, runs it, and has to end by itself.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const here = dirname(fileURLToPath(import.meta.url));
const projectRoot = dirname(dirname(here));
const compiler = join(projectRoot, 'node_modules', 'typescript', 'bin', 'tsc');

const APPLICATIONS = [
  { folder: 'esm', type: 'module', nest: '^12.0.0', ioredis: '^6.0.0' },
  { folder: 'commonjs', type: 'commonjs', nest: '^11.0.0', ioredis: '^5.4.0' },
];

const INSTALL_LIMIT_MS = 240_000;
const RUN_LIMIT_MS = 30_000;

const execute = promisify(execFile);

/** Ends the program after `timeout`; what it wrote becomes part of the error. */
async function run(program, args, cwd, timeout = INSTALL_LIMIT_MS) {
  const env = { ...process.env };
  delete env.NODE_OPTIONS; // an application runs without the flags of our tests
  try {
    const { stdout } = await execute(program, args, { cwd, env, timeout });
    return stdout;
  } catch (error) {
    const reason = error.killed
      ? `did not end within ${timeout} ms`
      : `failed with ${error.code ?? error.signal}`;
    const output = [error.stdout, error.stderr].filter(Boolean).join('\n');
    throw new Error(`${[program, ...args].join(' ')} ${reason}\n${output}`, { cause: error });
  }
}

async function pack(destination) {
  if (!existsSync(join(projectRoot, 'dist', 'index.js'))) {
    throw new Error('smoke: there is no dist/index.js to pack: run "npm run build" first');
  }
  await run('npm', ['pack', '--pack-destination', destination, '--loglevel=error'], projectRoot);
  const tarball = (await readdir(destination)).find((name) => name.endsWith('.tgz'));
  return join(destination, tarball);
}

async function writeApplication(root, tarball, { type, nest, ioredis }) {
  const { devDependencies } = JSON.parse(await readFile(join(projectRoot, 'package.json'), 'utf8'));
  const manifest = {
    name: 'holdfast-smoke',
    private: true,
    type,
    dependencies: {
      '@nestjs/common': nest,
      '@nestjs/core': nest,
      ioredis,
      'nestjs-holdfast': `file:${tarball}`,
      'reflect-metadata': devDependencies['reflect-metadata'],
      rxjs: devDependencies.rxjs,
    },
    devDependencies: { '@types/node': devDependencies['@types/node'] },
  };
  const tsconfig = {
    compilerOptions: {
      target: 'ES2022',
      module: 'NodeNext',
      outDir: 'dist',
      rootDir: '.',
      strict: true,
      experimentalDecorators: true,
      emitDecoratorMetadata: true,
      // The published declarations must be right for those who check them.
      skipLibCheck: false,
      types: ['node'],
    },
    files: ['app.ts'],
  };
  await mkdir(root);
  await writeFile(join(root, 'package.json'), JSON.stringify(manifest));
  await writeFile(join(root, 'tsconfig.json'), JSON.stringify(tsconfig));
  await copyFile(join(here, 'app.ts'), join(root, 'app.ts'));
}

async function tryApplication(parent, tarball, application) {
  const { folder, type, nest, ioredis } = application;
  const root = join(parent, folder);
  await writeApplication(root, tarball, application);
  const quietly = ['--no-audit', '--no-fund', '--no-package-lock', '--loglevel=error'];
  await run('npm', ['install', '--prefer-offline', ...quietly], root);
  await run(process.execPath, [compiler, '-p', 'tsconfig.json'], root);
  const output = await run(process.execPath, [join('dist', 'app.js')], root, RUN_LIMIT_MS);
  if (!output.includes('app: closed')) {
    throw new Error(`smoke: the ${type} application ended before its end:\n${output}`);
  }
  console.log(`smoke: ${type} application, Nest ${nest}, ioredis ${ioredis}: ok`);
}

const parent = await mkdtemp(join(tmpdir(), 'holdfast-smoke-'));
try {
  const tarball = await pack(parent);
  const attempts = APPLICATIONS.map((application) => tryApplication(parent, tarball, application));
  for (const { reason } of await Promise.allSettled(attempts)) {
    if (reason === undefined) continue;
    console.error(reason.message);
    process.exitCode = 1;
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await rm(parent, { recursive: true, force: true });
}
