/**
 * `npm run smoke`: packs the built library and its packages as npm would publish them and installs the tarballs into two
 * applications. Each type-checks app.ts, and the declarations of every entry, with the oldest and the newest TypeScript. It compiles
 * app.ts, runs it, and has to end by itself. The one of CommonJS does so with the classic settings as well, which the newest TypeScript
 * does not know any more.
 * The declarations name pages by their URL, and the package is as light as it says.
 */
import { copyFile, mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runToTheEnd } from '../../../scripts/processes.mjs';
import { install, pack, projectRoot, run, temporaryFolder } from '../../support/consumer.mjs';
import { pagesWithoutUrl } from './named-files.mjs';

const here = dirname(fileURLToPath(import.meta.url));
/** Of this project. */
const compiler = join(projectRoot, 'node_modules', '.bin', 'tsc');

const APPLICATIONS = [
  { folder: 'esm', type: 'module', nest: '^12.0.0', ioredis: '^6.0.0' },
  { folder: 'commonjs', type: 'commonjs', nest: '^11.0.0', ioredis: '^5.4.0' },
];
const NEWEST_TYPESCRIPT = '7';
/** The settings of applications older than `nodenext`: types are found by `types` and `typesVersions`. */
const CLASSIC = {
  module: 'CommonJS',
  moduleResolution: 'node',
  esModuleInterop: true,
  outDir: 'classic',
};

/** Packed: what an installation has to fetch. */
const MOST_KB = { 'nestjs-holdfast': 228, '@nestjs-holdfast/cli': 40 };
const MOST_KB_OF_OTHERS = 30;

const RUN_LIMIT_MS = 30_000;

async function writeApplication(root, tarballs, { type, nest, ioredis }) {
  const own = JSON.parse(await readFile(join(projectRoot, 'package.json'), 'utf8'));
  const { devDependencies } = own;
  const manifest = {
    name: 'holdfast-smoke',
    private: true,
    type,
    dependencies: {
      '@nestjs/common': nest,
      '@nestjs/core': nest,
      ioredis,
      ...Object.fromEntries(
        Object.entries(tarballs).map(([name, tarball]) => [name, `file:${tarball}`]),
      ),
      'reflect-metadata': devDependencies['reflect-metadata'],
      rxjs: devDependencies.rxjs,
    },
    devDependencies: {
      '@types/node': devDependencies['@types/node'],
      // For the pages of @nestjs-holdfast/board.
      '@nestjs/platform-express': nest,
      // What the declarations of some entries import.
      '@nestjs/swagger': nest,
      '@nestjs/terminus': nest,
      '@opentelemetry/api': devDependencies['@opentelemetry/api'],
      'prom-client': devDependencies['prom-client'],
    },
  };
  const tsconfig = {
    compilerOptions: {
      target: 'ES2022',
      module: 'NodeNext',
      outDir: 'dist',
      rootDir: '.',
      strict: true,
      // The types that consumer.ts exports need names that an application can import.
      declaration: true,
      experimentalDecorators: true,
      emitDecoratorMetadata: true,
      // The published declarations must be right for those who check them.
      skipLibCheck: false,
      types: ['node'],
    },
    files: ['app.ts', 'entries.ts', 'consumer.ts'],
  };
  const entries = Object.entries(own.exports)
    .filter(([, { types }]) => types !== undefined)
    .map(([path]) => join(own.name, path));
  const imports = [...entries, ...PACKAGES_WITH_TYPES].map((name) => `import '${name}';\n`);
  await mkdir(root);
  await writeFile(join(root, 'entries.ts'), imports.join(''));
  await writeFile(join(root, 'package.json'), JSON.stringify(manifest));
  await writeFile(join(root, 'tsconfig.json'), JSON.stringify(tsconfig));
  const classic = { extends: './tsconfig.json', compilerOptions: CLASSIC };
  await writeFile(join(root, 'tsconfig.classic.json'), JSON.stringify(classic));
  for (const file of ['app.ts', 'consumer.ts', 'light.mjs'])
    await copyFile(join(here, file), join(root, file));
}

/** As the README states it: `5.8`. */
async function oldestTypeScript() {
  const readme = await readFile(join(projectRoot, 'README.md'), 'utf8');
  const oldest = /TypeScript (\d+\.\d+) or later/.exec(readme)?.[1];
  if (oldest === undefined)
    throw new Error('README.md does not say which TypeScript is the oldest.');
  return oldest;
}

/** Resolves with the path of the compiler. */
async function installTypeScript(parent, version) {
  const folder = join(parent, `typescript-${version}`);
  await mkdir(folder);
  await writeFile(join(folder, 'package.json'), '{}');
  await install(folder, `typescript@${version}`);
  return join(folder, 'node_modules', '.bin', 'tsc');
}

/** @param compilers the oldest first */
async function tryApplication(parent, tarballs, compilers, application) {
  const { folder, type, nest, ioredis } = application;
  const root = join(parent, folder);
  await writeApplication(root, tarballs, application);
  await install(root);
  const looked = Object.keys(tarballs).map((name) =>
    pagesWithoutUrl(join(root, 'node_modules', name)),
  );
  const named = (await Promise.all(looked)).flat();
  if (named.length > 0) {
    throw new Error(`pages that are not in the package, without a URL:\n${named.join('\n')}`);
  }
  for (const check of compilers) await run(check, ['-p', 'tsconfig.json', '--noEmit'], root);
  await run(compiler, ['-p', 'tsconfig.json'], root);
  await runApplication(root, 'dist');
  if (type === 'commonjs') {
    await run(compilers[0], ['-p', 'tsconfig.classic.json'], root);
    await runApplication(root, CLASSIC.outDir);
  }
  await run(process.execPath, ['light.mjs'], root, RUN_LIMIT_MS);
  await tryCommand(root);
  await expectHintWithoutIoredis(root);
  console.log(`smoke: ${type} application, Nest ${nest}, ioredis ${ioredis}: ok`);
}

async function runApplication(root, folder) {
  const output = await run(process.execPath, [join(folder, 'app.js')], root, RUN_LIMIT_MS);
  if (!output.includes('app: closed'))
    throw new Error(`the application in ${root} ended before its end:\n${output}`);
}

/** The command, as `npx` finds it: the help, and a migration with the compiler of this project. */
async function tryCommand(root) {
  const command = join('node_modules', '.bin', 'nestjs-holdfast');
  const help = await run(command, ['help'], root, RUN_LIMIT_MS);
  if (!help.includes('doctor')) throw new Error(`nestjs-holdfast printed no help:\n${help}`);
  const file = join(root, 'moved.ts');
  await writeFile(
    file,
    "import Redlock from 'redlock';\nexport const redlock = new Redlock([]);\n",
  );
  await symlink(
    join(projectRoot, 'node_modules', 'typescript'),
    join(root, 'node_modules', 'typescript'),
  );
  await run(command, ['migrate', file], root, RUN_LIMIT_MS);
  if (!(await readFile(file, 'utf8')).includes("from '@nestjs-holdfast/redlock'"))
    throw new Error('nestjs-holdfast migrate did not rewrite the import of redlock.');
}

const WITH_A_URL =
  "import('nestjs-holdfast').then(({ LockService }) => new LockService({ redis: 'redis://localhost' }))";

/** An application that has no client of Redis needs none for locks in memory. With a URL, the error says what to install. */
async function expectHintWithoutIoredis(root) {
  await rm(join(root, 'node_modules', 'ioredis'), { recursive: true });
  await runApplication(root, 'dist');
  const attempt = run(process.execPath, ['--eval', WITH_A_URL], root, RUN_LIMIT_MS);
  const { message } = await attempt.then(
    () => new Error('the service was made'),
    (error) => error,
  );
  if (!message.includes('npm install ioredis, or npm install redis'))
    throw new Error(`without ioredis the message is not the one that helps:\n${message}`);
}

/** Others have no entry to import. */
const PACKAGES_WITH_TYPES = ['board', 'migrate', 'redlock'].map(
  (name) => `@nestjs-holdfast/${name}`,
);

/** The transformer for Jest has no types. */
const UNTYPED = ['--exclude-entrypoints', 'jest'];

async function checkPackage(name, tarball) {
  const kB = (await stat(tarball)).size / 1_000;
  const most = MOST_KB[name] ?? MOST_KB_OF_OTHERS;
  if (kB > most) throw new Error(`${name} has ${kB.toFixed(0)} kB, and ${most} are allowed`);
  console.log(`smoke: ${name} has ${kB.toFixed(0)} kB`);
  if (name === 'nestjs-holdfast' || PACKAGES_WITH_TYPES.includes(name))
    await run('npx', ['attw', tarball, '--profile', 'esm-only', ...UNTYPED], projectRoot);
}

const parent = temporaryFolder('smoke');

await runToTheEnd('smoke', async () => {
  const tarballs = await pack(parent, '--workspaces', '--include-workspace-root');
  for (const [name, tarball] of Object.entries(tarballs)) await checkPackage(name, tarball);
  const versions = [await oldestTypeScript(), NEWEST_TYPESCRIPT];
  const compilers = await Promise.all(
    versions.map((version) => installTypeScript(parent, version)),
  );
  const attempts = APPLICATIONS.map((application) =>
    tryApplication(parent, tarballs, compilers, application),
  );
  for (const { reason } of await Promise.allSettled(attempts)) {
    if (reason === undefined) continue;
    console.error(reason.message);
    process.exitCode = 1;
  }
});
