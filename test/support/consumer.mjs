/** Packs the built library as npm would publish it, and runs npm and other programs in applications that install the tarball. */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const projectRoot = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

const LIMIT_MS = 300_000;
const QUIETLY = ['--no-audit', '--no-fund', '--no-package-lock', '--loglevel=error'];

const execute = promisify(execFile);

/** A folder that is removed when this process ends. */
export function temporaryFolder(name) {
  const folder = mkdtempSync(join(tmpdir(), `holdfast-${name}-`));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** Resolves with what the program wrote. It is ended after `timeout`, and with this process; what it wrote becomes part of the error. */
export async function run(program, args, cwd, timeout = LIMIT_MS) {
  const env = { ...process.env };
  delete env.NODE_OPTIONS; // an application runs without the flags of our tests
  const execution = execute(program, args, { cwd, env, timeout });
  const end = () => execution.child.kill('SIGKILL');
  process.prependOnceListener('exit', end); // before its folder is removed
  try {
    return (await execution).stdout;
  } catch (error) {
    const reason = error.killed
      ? `did not end within ${timeout} ms`
      : `failed with ${error.code ?? error.signal}`;
    const output = [error.stdout, error.stderr].filter(Boolean).join('\n');
    throw new Error(`${[program, ...args].join(' ')} ${reason}\n${output}`, { cause: error });
  } finally {
    process.off('exit', end);
  }
}

/** Packs the library, and with `--workspaces` its packages. Resolves with the path of each tarball, by the name of the package. */
export async function pack(destination, ...which) {
  if (!existsSync(join(projectRoot, 'dist', 'index.js'))) {
    throw new Error('There is no dist/index.js to pack: run "npm run build" first.');
  }
  const quietly = ['--ignore-scripts', '--loglevel=error', '--json'];
  const output = await run(
    'npm',
    ['pack', ...which, ...quietly, '--pack-destination', destination],
    projectRoot,
  );
  return Object.fromEntries(
    Object.values(JSON.parse(output)).map(({ name, filename }) => [
      name,
      join(destination, filename),
    ]),
  );
}

/** Installs what the package.json of the folder names, and these packages. */
export const install = (folder, ...packages) =>
  run('npm', ['install', '--prefer-offline', ...QUIETLY, ...packages], folder);
