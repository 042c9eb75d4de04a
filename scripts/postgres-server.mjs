/**
 * Starts a PostgreSQL server for the tests and the sample, and installs one where it can.
 * `node scripts/postgres-server.mjs program.js` runs a program beside a server, whose address is in DATABASE_URL.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { aptGet, executable, onPath, rootPrefix, run } from './programs.mjs';

const INSTALL_HINT = `Install one of these, then run the command again:
  Debian, Ubuntu:  sudo apt-get update && sudo apt-get install -y --no-install-recommends postgresql
  macOS:           brew install postgresql
  Alpine:          sudo apk add postgresql
or name the folder of its programs "postgres" and "initdb": POSTGRES_BIN=/path/to/bin`;

/** Debian keeps the programs of each version in a folder of its own. */
const DEBIAN = '/usr/lib/postgresql';

/** The folder of the programs: `$POSTGRES_BIN`, else that of `initdb` on the PATH, else Debian's. */
function findPostgres() {
  const onThePath = onPath('initdb');
  const versions = executable('/usr/bin/pg_lsclusters') ? readdirSync(DEBIAN).sort().reverse() : [];
  const folders = [
    process.env.POSTGRES_BIN,
    onThePath && dirname(onThePath),
    ...versions.map((version) => join(DEBIAN, version, 'bin')),
  ];
  return folders.find((folder) => folder && executable(join(folder, 'initdb')));
}

function install(log) {
  if (onPath('apt-get')) aptGet(log, 'postgres', 'postgresql');
  else if (onPath('brew')) run(log, 'postgres', ['brew', 'install', 'postgresql']);
  else if (onPath('apk')) {
    const asRoot = rootPrefix();
    if (asRoot) run(log, 'postgres', [...asRoot, 'apk', 'add', '--no-cache', 'postgresql']);
  }
  return findPostgres();
}

/**
 * Starts a server with an empty database, which clients reach by a socket in its folder. Resolves with its `url` once it
 * accepts connections. `stop()` ends it and removes its data.
 */
export async function startPostgres(log = console.log) {
  const programs = findPostgres() ?? install(log);
  if (!programs)
    throw new Error(`No PostgreSQL server was found, nor could one be installed.\n${INSTALL_HINT}`);
  log(`postgres: using ${programs}`);
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-postgres-'));
  const user = userOf(folder);
  const data = join(folder, 'data');
  const inData = [...['-D', data], ...['-U', 'holdfast'], ...['--auth', 'trust']];
  const fast = ['--no-sync', ...['-E', 'UTF8'], ...['--locale', 'C']];
  const made = spawnSync(join(programs, 'initdb'), [...inData, ...fast], {
    ...{ ...user, cwd: folder, encoding: 'utf8' },
  });
  if (made.status !== 0) throw new Error(`initdb failed: ${made.error ?? made.stderr}`);
  const settings = ['listen_addresses=', `unix_socket_directories=${folder}`, 'fsync=off'];
  const child = spawn(
    join(programs, 'postgres'),
    ['-D', data, ...settings.flatMap((setting) => ['-c', setting])],
    { ...user, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const exited = once(child, 'exit').then(() => undefined);
  await becomesReady(child);
  const stop = async () => {
    child.kill('SIGQUIT');
    await exited;
    rmSync(folder, { recursive: true, force: true });
  };
  const url = `postgres://holdfast@localhost/postgres?host=${folder}`;
  return { url, folder, pid: child.pid, exited, stop };
}

/** PostgreSQL refuses to run as root. Debian's package makes a user for it. */
function userOf(folder) {
  if (process.getuid?.() !== 0) return {};
  const idOf = (option, name) =>
    Number(spawnSync('id', [option, name], { encoding: 'utf8' }).stdout || NaN);
  const name = idOf('-u', 'postgres') > 0 ? 'postgres' : 'nobody';
  const [uid, gid] = [idOf('-u', name), idOf('-g', name)];
  chownSync(folder, uid, gid);
  return { uid, gid };
}

async function becomesReady(child) {
  let output = '';
  await new Promise((resolve, reject) => {
    const failed = () => reject(new Error(`The PostgreSQL server did not start:\n${output}`));
    child.once('error', reject);
    child.once('exit', failed);
    child.stderr.setEncoding('utf8').on('data', (text) => {
      output += text;
      if (output.includes('ready to accept connections')) resolve();
    });
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const server = await startPostgres();
  const program = spawn(process.execPath, process.argv.slice(2), {
    env: { ...process.env, DATABASE_URL: server.url },
    stdio: 'inherit',
  });
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => program.kill(signal));
  const [code] = await once(program, 'exit');
  await server.stop();
  process.exitCode = code ?? 1;
}
