/**
 * Finds a Redis (or Valkey) server program for tests and samples, and installs one where it can.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { aptGet, executable, onPath, rootPrefix, run } from './programs.mjs';

const projectRoot = dirname(dirname(fileURLToPath(import.meta.url)));
const ownLink = join(projectRoot, 'node_modules', '.cache', 'nestjs-holdfast', 'redis-server');

/** What a developer can run by hand where the installation is left to them. */
export const INSTALL_HINT = `Install one of these, then run the command again:
  Debian, Ubuntu:  sudo apt-get update && sudo apt-get install -y --no-install-recommends redis-server
  macOS:           brew install redis
  Alpine:          sudo apk add redis
or name the program of an existing installation (Redis 6.2 or later, Valkey 7.2 or later):
  REDIS_SERVER_BIN=/path/to/redis-server npm test`;

/** The path of a server program: `$REDIS_SERVER_BIN`, else `redis-server` or `valkey-server` on the PATH. */
export function findRedisServer() {
  const named = process.env.REDIS_SERVER_BIN;
  if (named) {
    const found = named.includes('/') ? executable(named) : onPath(named);
    if (!found) {
      throw new Error(
        `REDIS_SERVER_BIN is "${named}", which is no program that can be run. Correct it or unset it.`,
      );
    }
    return found;
  }
  return onPath('redis-server') ?? onPath('valkey-server') ?? executable(ownLink);
}

/** Like `findRedisServer()`, but installs a server where there is none; throws with instructions if it cannot. */
export function ensureRedisServer(log = console.log) {
  log('redis: looking for a server program');
  const found = findRedisServer() ?? install(log);
  if (!found)
    throw new Error(`No Redis server was found, nor could one be installed.\n${INSTALL_HINT}`);
  log(`redis: using ${found} (${versionOf(found) ?? 'unknown version'})`);
  return found;
}

function install(log) {
  if (onPath('apt-get')) return installWithApt(log);
  if (onPath('brew')) {
    run(log, 'redis', ['brew', 'install', 'redis']);
  } else if (onPath('apk')) {
    const asRoot = rootPrefix();
    if (asRoot) run(log, 'redis', [...asRoot, 'apk', 'add', '--no-cache', 'redis']);
    else log('redis: apk needs root, and sudo asks for a password');
  } else {
    log('redis: none of apt-get, brew and apk is here');
  }
  return findRedisServer();
}

/**
 * On Debian the server program is in `redis-tools`; the package `redis-server` adds a link to it and a
 * service that starts at once on port 6379. The tests want the program alone, so the link is made here.
 */
function installWithApt(log) {
  if (aptGet(log, 'redis', 'redis-tools')) {
    const linked = linkServerProgram('/usr/bin/redis-check-rdb');
    if (linked) return linked;
  }
  aptGet(log, 'redis', 'redis-server');
  return findRedisServer();
}

/** The program decides by the name it is called by whether it is the server, hence a link. */
function linkServerProgram(program) {
  if (!executable(program)) return undefined;
  mkdirSync(dirname(ownLink), { recursive: true });
  rmSync(ownLink, { force: true });
  symlinkSync(program, ownLink);
  if (versionOf(ownLink)) return ownLink;
  rmSync(ownLink);
  return undefined;
}

/** As the program states it. */
export function versionOf(program) {
  const { status, stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' });
  if (status !== 0) return undefined;
  return /(?:Redis|Valkey) server v=\S+/i.exec(stdout)?.[0] ?? /v=\S+/.exec(stdout)?.[0];
}
