/** Finds Prometheus' `promtool` for the tests of the alert rules, and unpacks that of Debian where there is none: nothing is installed. */
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { executable, onPath, rootPrefix, run } from './programs.mjs';

const projectRoot = dirname(dirname(fileURLToPath(import.meta.url)));
const own = join(projectRoot, 'node_modules', '.cache', 'nestjs-holdfast', 'promtool');

/** What a developer can run by hand where the program cannot be had. */
const INSTALL_HINT = `Install Prometheus, or name its program, then run the command again:
  PROMTOOL_BIN=/path/to/promtool npm run test:long`;

/** The path of the program: `$PROMTOOL_BIN`, else what is on the PATH, else what Debian has. */
export function ensurePromtool(log = console.log) {
  const found = process.env.PROMTOOL_BIN ?? onPath('promtool') ?? executable(own) ?? unpack(log);
  if (!found) throw new Error(`No promtool was found, nor could one be had.\n${INSTALL_HINT}`);
  log(`promtool: using ${found}`);
  return found;
}

function unpack(log) {
  if (!onPath('apt-get') || !onPath('dpkg-deb')) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'promtool-'));
  try {
    run(log, 'promtool', [...(rootPrefix() ?? []), 'apt-get', 'update']);
    run(log, 'promtool', ['apt-get', 'download', 'prometheus'], folder);
    const [archive] = readdirSync(folder);
    if (!archive || !run(log, 'promtool', ['dpkg-deb', '-x', join(folder, archive), folder]))
      return undefined;
    mkdirSync(dirname(own), { recursive: true });
    copyFileSync(join(folder, 'usr/bin/promtool'), own);
    chmodSync(own, 0o755);
    return executable(own);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
